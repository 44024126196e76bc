"""The pipeline in fp32 over real pictures: what lower precisions are calibrated with, and what engines are held to.

It is built for ONNX Runtime into a folder of its own and runs through the very stages that serve.
"""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tricade.onnx_network import cores
from tricade.stage import Arrays

from .local import LocalPipeline, Run
from .pictures import Pictures
from .samples import Sample
from .weights import Report

MAX_CROPS = 1024  # kept for each classifier, evenly over the pictures
ON_DISK_BYTES = 1 << 20  # arrays from here on are kept in files


class Baseline:
    """One set of pictures; the pipeline runs over it when its samples are first asked for."""

    def __init__(self, repository: Path, name: str, pictures: Pictures, report: Report) -> None:
        self.pictures = pictures
        self._repository, self._name, self._report = repository, name, report
        self._folder = tempfile.TemporaryDirectory(prefix="tricade-")
        self._lock = threading.Lock()

    def samples(self, model: str) -> list[Sample]:
        """What the model was given, in the order of the pictures. A classifier's blank crops are none."""
        with self._lock:
            return self._samples[model]

    def close(self) -> None:
        self._folder.cleanup()

    @cached_property
    def _samples(self) -> Mapping[str, list[Sample]]:
        pipeline = LocalPipeline(self._repository, self._name)
        kept = _Kept(Path(self._folder.name), rows=max(1, MAX_CROPS // len(self.pictures.files)))
        for model, run in pipeline.networks.items():
            pipeline.networks[model] = _recorded(run, partial(kept.add, model))

        def look(place: int) -> None:
            kept.begin(place)
            pipeline({"IMAGE": np.array([self.pictures.encoded(place)], np.object_)})

        try:
            with ThreadPoolExecutor(cores()) as pool:
                count = len(self.pictures.files)
                for done, _ in enumerate(pool.map(look, range(count)), start=1):
                    self._report(f"running {self._name} in fp32 over {count} pictures", done / count)
        finally:
            pipeline.close()
        names = [file.name for file in self.pictures.files]
        return {model: kept.samples(model, names) for model in pipeline.networks}


def _recorded(run: Run, note: Callable[[Arrays], None]) -> Run:
    """A network whose inputs somebody notes down."""

    def recorded(inputs: Arrays) -> Arrays:
        note(inputs)
        return run(inputs)

    return recorded


class _Kept:
    """Inputs by model and picture; `rows` at most of each execution."""

    def __init__(self, folder: Path, *, rows: int) -> None:
        self._folder, self._rows = folder, rows
        self._mine = threading.local()
        self._inputs: dict[tuple[str, int], list[Arrays]] = defaultdict(list)
        self._files = 0
        self._lock = threading.Lock()

    def begin(self, place: int) -> None:
        """What this thread adds from now on belongs to picture number `place`."""
        self._mine.place = place

    def add(self, model: str, inputs: Arrays) -> None:
        ((name, array),) = inputs.items()
        if name == "CROPS" and len(array) == 1 and (array == array.flat[0]).all():
            return  # the blank that fills the ensemble's edge where there is no crop
        chosen = np.unique(np.linspace(0, len(array) - 1, min(self._rows, len(array))).round().astype(int))
        value = self._stored(array[chosen])
        with self._lock:
            self._inputs[model, self._mine.place].append({name: value})

    def samples(self, model: str, pictures: list[str]) -> list[Sample]:
        return [
            Sample(picture, inputs)
            for place, picture in enumerate(pictures)
            for inputs in self._inputs.get((model, place), [])
        ]

    def _stored(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy, in memory or in a file."""
        if array.nbytes < ON_DISK_BYTES:
            return array.copy()
        with self._lock:
            self._files += 1
            file = self._folder / f"{self._files}.npy"
        np.save(file, array)
        return np.load(file, mmap_mode="r")
