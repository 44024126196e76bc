"""The networks of a pipeline as jobs for a target: what to fold, and everything that the result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .code import digest_of
from .ends import End
from .errors import FoldError
from .families import FAMILIES
from .families import seams as family_seams
from .fold import Folded, Front, fold
from .heads import HEADS
from .heads import Want as HeadWant
from .rules import repeated
from .seams import NO_SEAMS, Seams
from .source import Source
from .spec import Builder, Classifier, Detector, Pipeline
from .want import Want as FamilyWant

DEFAULTS = Builder()


@dataclass(frozen=True)
class Job:
    """One network: "detector" or the classifier's name."""

    name: str
    model: str  # in the repository
    source: Source
    labels: tuple[str, ...]  # as the pipeline file gives them
    front: Front
    end: End
    settings: Mapping[str, Any]  # what `end` depends on
    seams: Seams = NO_SEAMS
    max_batch: int = 1
    opt_batch: int = 1  # the likeliest
    precision: str = "fp32"
    keep_fp32: tuple[str, ...] = ()
    builder: Builder = DEFAULTS

    @property
    def key(self) -> str:
        """Equal keys mean equal graphs: source, settings, and the code that folds."""
        front = self.front
        parts = {
            "source": self.source.sha256,
            "front": [front.name, front.size, front.widths, front.normalize.model_dump(), front.single],
            "end": dict(self.settings),
            "code": _code(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def fold(self) -> Folded:
        return fold(self.source.model, self.front, self.end, seams=self.seams)


def job_of(pipeline: Pipeline, name: str) -> Job:
    """`name`: "detector" or a classifier's; raises `FoldError` where labels cannot be read."""
    network = pipeline.detector if name == "detector" else pipeline.classifiers[name]
    if isinstance(network, Detector):
        job = _detector_job(pipeline.name, network)
    else:
        job = _classifier_job(pipeline.name, name, network)
    return replace(
        job,
        max_batch=network.max_batch,
        opt_batch=network.opt_batch or network.max_batch,
        precision=network.precision or pipeline.precision,
        keep_fp32=network.keep_fp32,
        builder=pipeline.builder,
    )


def front_of(detector: Detector) -> Front:
    return Front("TENSOR", detector.size, (), detector.normalize, single=detector.max_batch == 1)


def want_of(detector: Detector, labels: tuple[str, ...]) -> FamilyWant:
    return FamilyWant(
        size=detector.size,
        classes=len(labels),
        candidates=detector.candidates,
        decoded=detector.decoded,
        activation=detector.activation,
    )


def _detector_job(pipeline: str, detector: Detector) -> Job:
    source, family = Source(Path(detector.onnx)), FAMILIES[detector.family]
    labels = _labels(source, detector.labels)
    if (known := source.known_names) is not None and len(known) != len(labels):
        raise FoldError(
            f"expected {len(known)} labels, as {source.path.name} names {len(known)} classes itself; got "
            f"{len(labels)}; `labels: metadata:names` takes them from there"
        )
    want = want_of(detector, labels)
    return Job(
        name="detector",
        model=f"{pipeline}_detector",
        source=source,
        labels=labels,
        front=front_of(detector),
        end=lambda nodes, answer: family.end(nodes, answer, want),
        settings={"family": family.name, **asdict(want)},
        seams=family_seams(),
    )


def _classifier_job(pipeline: str, name: str, classifier: Classifier) -> Job:
    source, head = Source(Path(classifier.onnx)), HEADS[classifier.head]
    widths = classifier.widths or ()
    want = HeadWant(classifier.top_k, any_width=bool(widths), normalize=classifier.normalize_embedding)
    return Job(
        name=name,
        model=f"{pipeline}_{name}",
        source=source,
        labels=() if classifier.labels is None else _labels(source, classifier.labels, unique=head.unique),
        front=Front("CROPS", classifier.size, widths, classifier.normalize, single=classifier.max_batch == 1),
        end=lambda nodes, answer: head.end(nodes, answer, want),
        settings={"head": head.name, **asdict(want)},
    )


def _labels(source: Source, labels: tuple[str, ...] | str, *, unique: bool = True) -> tuple[str, ...]:
    names = source.names(labels)
    if unique and (problem := repeated(names)):
        where = "the labels" if isinstance(labels, tuple) else labels
        raise FoldError(f"{where}: {problem}")
    return names


def _code() -> list[str]:
    """tricade's version, and a digest of the sources that decide what a folded graph is."""
    shared = ("candidates", "ends", "fold", "graph", "grid", "plain", "seams", "top_k", "want")
    return [version("tricade"), digest_of(*shared, "families/*", "heads/*")]
