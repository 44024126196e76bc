"""The pictures of one build, and what the networks make of them in fp32. Nothing is read or run before it is needed."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx

from tricade.versions import latest_folder

from .baseline import Baseline
from .errors import SampleError
from .fold import Folded, raw_of
from .manifest import GRAPH, MANIFEST, records_from
from .networks import Job
from .pictures import Pictures, pictures_from
from .samples import Sample
from .spec import Classifier, Pipeline
from .weights import Report

MIN_CROPS = 16  # fewer say nothing about a classifier
# Keys that the job knows better, or without influence.
APART = {"onnx", "labels", "precision", "keep_fp32", "opt_batch", "instances", "max_delay_us"}


class Evidence:
    """`fp32` builds the pipeline in fp32 for ONNX Runtime, and says into which folder."""

    def __init__(self, pipeline: Pipeline, jobs: dict[str, Job], fp32: Callable[[], Path], report: Report) -> None:
        self.pipeline, self._jobs, self._report = pipeline, jobs, report
        self._fp32 = fp32
        self._repository: Path | None = None
        self._lock, self._building = threading.Lock(), threading.Lock()
        self._baselines: dict[str, Baseline] = {}

    @cached_property
    def calibration(self) -> Pictures:
        """Raises `SampleError` where the pipeline file names none."""
        section = self.pipeline.calibration
        if section is None:
            raise SampleError(
                "calibration: expected a folder of pictures to measure int8 ranges on; the pipeline file names none; "
                "add `calibration: {images: FOLDER}`"
            )
        return pictures_from(Path(section.images), count=section.count, where="calibration.images")

    @cached_property
    def verification(self) -> Pictures | None:
        """The folder of `verification`, else that of `calibration`; None where neither is named."""
        section, calibration = self.pipeline.verification, self.pipeline.calibration
        if section.images:
            return pictures_from(Path(section.images), count=section.count, where="verification.images")
        if calibration:
            return pictures_from(Path(calibration.images), count=section.count, where="calibration.images")
        return None

    def key(self, name: str, pictures: Pictures) -> str:
        """What the samples of a network depend on: pictures, and all that turns them into its inputs."""
        detector = self.pipeline.detector
        parts: list[Any] = [pictures.sha256, detector.model_dump(mode="json", exclude=APART)]
        if name != "detector":
            parts += [self._jobs["detector"].key, self._jobs["detector"].labels]
            parts += self._cropping(name, self.pipeline.classifiers[name])
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _cropping(self, name: str, classifier: Classifier) -> list[Any]:
        parts: list[Any] = [name, classifier.model_dump(mode="json", exclude=APART)]
        if classifier.upright:
            parts += [self._jobs[classifier.upright].key, self._jobs[classifier.upright].labels]
            parts += self._cropping(classifier.upright, self.pipeline.classifiers[classifier.upright])
        return parts

    @property
    def method(self) -> str:
        """Of calibration."""
        assert self.pipeline.calibration
        return self.pipeline.calibration.method

    def samples(self, name: str, pictures: Pictures, *, enough: bool = False) -> list[Sample]:
        """What the network is given while the pipeline runs over the pictures.

        Raises `SampleError` where that should be `enough` to calibrate, and is not.
        """
        samples = self._baseline(pictures).samples(self._jobs[name].model)
        crops = sum(len(next(iter(sample.inputs.values()))) for sample in samples)
        if enough and name != "detector" and crops < MIN_CROPS:
            raise SampleError(
                f"classifiers.{name}: expected at least {MIN_CROPS} crops; the detector finds {crops} for it in "
                f"{len(pictures.files)} pictures; add pictures with such things in them to {pictures.where}"
            )
        return samples

    def folded(self, name: str) -> Folded:
        """The network in fp32, as it lies in `repository`."""
        folder = latest_folder(self.repository / self._jobs[name].model)
        model = onnx.load(folder / GRAPH)
        return Folded(model, records_from(folder / MANIFEST)[GRAPH].shapes, raw_of(model.graph))

    @property
    def repository(self) -> Path:
        """The pipeline in fp32 for ONNX Runtime."""
        with self._building:
            if self._repository is None:
                self._repository = self._fp32()
            return self._repository

    def _baseline(self, pictures: Pictures) -> Baseline:
        with self._lock:
            if pictures.sha256 not in self._baselines:
                pictures.check(self.pipeline.limits)
                made = Baseline(self.repository, self.pipeline.name, pictures, self._report)
                self._baselines[pictures.sha256] = made
            return self._baselines[pictures.sha256]

    def close(self) -> None:
        for baseline in self._baselines.values():
            baseline.close()
