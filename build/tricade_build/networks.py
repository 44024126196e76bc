"""The networks of a pipeline as jobs for a target: what to fold, and everything that the result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .ends import End
from .families import FAMILIES
from .families import Want as FamilyWant
from .fold import Folded, Front, fold
from .heads import HEADS
from .heads import Want as HeadWant
from .source import Source
from .spec import Classifier, Detector, Pipeline


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

    @property
    def key(self) -> str:
        """Equal keys mean equal graphs: source, settings, and the code that folds."""
        front = self.front
        parts = {
            "source": self.source.sha256,
            "front": [front.name, front.size, front.widths, front.normalize.model_dump()],
            "end": dict(self.settings),
            "code": _code(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def fold(self) -> Folded:
        return fold(self.source.model, self.front, self.end)


def job_of(pipeline: Pipeline, name: str) -> Job:
    """`name`: "detector" or a classifier's; raises `FoldError` where labels cannot be read."""
    if name == "detector":
        return _detector_job(pipeline.name, pipeline.detector)
    return _classifier_job(pipeline.name, name, pipeline.classifiers[name])


def _detector_job(pipeline: str, detector: Detector) -> Job:
    source, family = Source(Path(detector.onnx)), FAMILIES[detector.family]
    labels = source.names(detector.labels)
    want = FamilyWant(detector.size, len(labels), detector.candidates)
    return Job(
        name="detector",
        model=f"{pipeline}_detector",
        source=source,
        labels=labels,
        front=Front("TENSOR", detector.size, (), detector.normalize),
        end=lambda nodes, raw: family.end(nodes, raw, want),
        settings={"family": family.name, "classes": want.classes, "candidates": want.candidates},
    )


def _classifier_job(pipeline: str, name: str, classifier: Classifier) -> Job:
    source, head = Source(Path(classifier.onnx)), HEADS[classifier.head]
    widths = classifier.widths or ()
    want = HeadWant(classifier.top_k, any_width=bool(widths))
    return Job(
        name=name,
        model=f"{pipeline}_{name}",
        source=source,
        labels=source.names(classifier.labels),
        front=Front("CROPS", classifier.size, widths, classifier.normalize),
        end=lambda nodes, raw: head.end(nodes, raw, want),
        settings={"head": head.name, "top_k": want.top_k},
    )


@cache
def _code() -> list[str]:
    """tricade's version, and a digest of the sources that decide what a folded graph is."""
    here = Path(__file__).parent
    files = [here / name for name in ("ends.py", "fold.py", "graph.py", "top_k.py")]
    files += sorted([*here.glob("families/*.py"), *here.glob("heads/*.py")])
    return [version("tricade"), hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()]
