"""`family: auto`: the family that a detector's own answer shows."""

from __future__ import annotations

from pathlib import Path

from .errors import FoldError, SpecError
from .families import AUTO, chosen, seams
from .networks import front_of, want_of
from .plain import opened
from .rules import problems_of
from .source import Source
from .spec import Detector, Pipeline


def settled(path: Path, pipeline: Pipeline) -> Pipeline:
    """The pipeline with the family named, and the defaults that follow from it; raises `BuildError`."""
    detector = pipeline.detector
    if detector.family != AUTO:
        return pipeline
    source = Source(Path(detector.onnx))
    try:
        answer = opened(source.model, front_of(detector), seams()).answer
        family = chosen(answer, want_of(detector, source.names(detector.labels)))
    except FoldError as error:
        raise FoldError(f"{path}: detector.family: {error}") from error
    given = {key: getattr(detector, key) for key in detector.model_fields_set} | {"family": family.name}
    if isinstance(detector.labels, tuple):
        given["labels"] = list(detector.labels)  # as YAML gives them
    named = Detector.model_validate(given)
    pipeline = pipeline.model_copy(update={"detector": named})
    if problems := list(problems_of(pipeline)):
        raise SpecError(path, problems)
    return pipeline
