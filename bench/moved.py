"""Bytes between the processes of a server: what each model is given and answers, for one call."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tricade.stage import Arrays
from tricade_build.local import LocalPipeline

from .peers.pipeline import image_from
from .repository import without_ring


@dataclass(frozen=True)
class Moved:
    """Bytes of the tensors into a model's process and out of it, the batches that stages call for among them."""

    given: int = 0
    answered: int = 0

    def __add__(self, other: Moved) -> Moved:
        return Moved(self.given + other.given, self.answered + other.answered)


def moved(repository: Path, pipeline: str, picture: bytes) -> dict[str, Moved]:
    """By model, for one picture."""
    with closing(_Counted(repository, pipeline)) as counted:
        counted(image_from(picture))
        return counted.moved


def moved_inline(repository: Path, pipeline: str, picture: bytes) -> dict[str, Moved]:
    """The same if pictures travelled from step to step."""
    with TemporaryDirectory(dir=repository.parent) as folder:
        return moved(without_ring(repository, Path(folder) / "inline"), pipeline, picture)


class _Counted(LocalPipeline):
    def __init__(self, repository: Path, name: str) -> None:
        super().__init__(repository, name)
        self.moved: dict[str, Moved] = {}

    def _run(self, model: str, inputs: Arrays) -> Arrays:
        outputs = super()._run(model, inputs)
        mine = Moved(_bytes(inputs), _bytes(outputs))
        self.moved[model] = self.moved.get(model, Moved()) + mine
        return outputs


def _bytes(arrays: Arrays) -> int:
    return sum(_size(array) for array in arrays.values())


def _size(array: NDArray[Any]) -> int:
    """As Triton holds it: each element of BYTES has its length before it."""
    if array.dtype != np.object_:
        return array.nbytes
    return sum(4 + len(element) for element in array.ravel().tolist())
