"""Settings of the stages as `config.pbtxt` carries them: strings, lists comma-separated, booleans true or false."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .heads import HEADS
from .rules import TURNED
from .shapes import Shapes
from .spec import Classifier, Pipeline


def preprocess_parameters(pipeline: Pipeline) -> dict[str, str]:
    detector, limits, frames = pipeline.detector, pipeline.limits, pipeline.frames
    tile = detector.tile
    return _texts(
        size=detector.size,
        resize=detector.resize,
        pad=detector.pad,
        max_images=pipeline.max_images,
        max_bytes=limits.max_bytes,
        max_pixels=limits.max_pixels,
        ring_bytes=frames.ring_bytes,
        ring_slots=frames.ring_slots,
        tile=tile and tile.size,
        overlap=tile and tile.overlap,
        max_tiles=tile and detector.max_batch,
    )


def crop_parameters(pipeline: Pipeline, found: tuple[str, ...], *, boxes: bool) -> dict[str, str]:
    """`found`: the detector's class names; `boxes`: it ends in CANDIDATES."""
    detector = pipeline.detector
    own: dict[str, Any] = {"iou": detector.iou}
    if not boxes:
        own = {"binarize": detector.binarize, "unclip": detector.unclip, "dilate": detector.dilate}
    parameters = _texts(
        family="candidates" if boxes else detector.family,
        size=detector.size,
        resize=detector.resize,
        threshold=detector.threshold,
        max_detections=detector.max_detections,
        min_size=_unless(detector.min_size, 0),
        **own,
    )
    for name, classifier in pipeline.classifiers.items():
        for key, value in _crop_group(f"{pipeline.name}_{name}", classifier, found).items():
            parameters[f"{name}.{key}"] = value
    return parameters


def _crop_group(model: str, classifier: Classifier, found: tuple[str, ...]) -> dict[str, str]:
    classes = classifier.classes
    return _texts(
        size=classifier.size,
        resize=classifier.resize,
        pad=classifier.pad,
        max_batch=classifier.max_batch,
        model=model,
        classes=None if classes is None else [i for i, label in enumerate(found) if label in classes],
        widths=classifier.widths,
        rotate_tall=classifier.rotate_tall,
        packed=True if classifier.upright else None,
        padding=_unless(classifier.padding, 0),
        answers=_answers(classifier),
    )


def turn_parameters(pipeline: Pipeline, name: str, upright_names: tuple[str, ...]) -> dict[str, str]:
    classifier = pipeline.classifiers[name]
    return _texts(
        classifier=name,
        upright=classifier.upright,
        turned=upright_names.index(TURNED),
        threshold=classifier.upright_threshold,
        size=classifier.size,
        pad=classifier.pad,
        widths=classifier.widths,
        max_batch=classifier.max_batch,
        model=f"{pipeline.name}_{name}",
        answers=_answers(classifier),
    )


def label_parameters(pipeline: Pipeline, shapes: Mapping[str, Shapes]) -> dict[str, str]:
    parameters = {"detector.labels": "detector.txt"}
    for name, classifier in pipeline.classifiers.items():
        for key, value in _label_group(name, classifier, shapes[name]).items():
            parameters[f"{name}.{key}"] = value
    return parameters


def _label_group(name: str, classifier: Classifier, shapes: Shapes) -> dict[str, str]:
    if not HEADS[classifier.head].labelled:
        return _texts(head=classifier.head, dim=shapes.outputs[0].dims[0])
    return _texts(head=classifier.head, labels=f"{name}.txt", top_k=classifier.top_k, threshold=classifier.threshold)


def _answers(classifier: Classifier) -> tuple[str, ...] | None:
    """The network's outputs where they are not the usual ones, INDEX and SCORE."""
    return None if HEADS[classifier.head].labelled else ("EMBEDDING",)


def _unless(value: float, default: float) -> float | None:
    """Nothing where it is the stage's own default."""
    return None if value == default else value


def _texts(**values: Any) -> dict[str, str]:
    """Without those that are None."""
    return {name: _text(value) for name, value in values.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return ",".join(map(str, value))
    return str(value)
