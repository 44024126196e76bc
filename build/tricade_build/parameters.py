"""Settings of the stages as `config.pbtxt` carries them: strings, lists comma-separated, booleans true or false."""

from __future__ import annotations

from typing import Any

from .rules import TURNED
from .spec import Classifier, Pipeline


def preprocess_parameters(pipeline: Pipeline) -> dict[str, str]:
    detector, limits, frames = pipeline.detector, pipeline.limits, pipeline.frames
    return _texts(
        size=detector.size,
        resize=detector.resize,
        pad=detector.pad,
        max_images=pipeline.max_images,
        max_bytes=limits.max_bytes,
        max_pixels=limits.max_pixels,
        ring_bytes=frames.ring_bytes,
        ring_slots=frames.ring_slots,
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
        **own,
    )
    for name, classifier in pipeline.classifiers.items():
        for key, value in _crop_group(pipeline.name, name, classifier, found).items():
            parameters[f"{name}.{key}"] = value
    return parameters


def _crop_group(pipeline: str, name: str, classifier: Classifier, found: tuple[str, ...]) -> dict[str, str]:
    classes = classifier.classes
    return _texts(
        size=classifier.size,
        resize=classifier.resize,
        pad=classifier.pad,
        max_batch=classifier.max_batch,
        model=f"{pipeline}_{name}",
        classes=None if classes is None else [i for i, label in enumerate(found) if label in classes],
        widths=classifier.widths,
        rotate_tall=classifier.rotate_tall,
        packed=True if classifier.upright else None,
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
    )


def label_parameters(pipeline: Pipeline) -> dict[str, str]:
    parameters = {"detector.labels": "detector.txt"}
    for name, classifier in pipeline.classifiers.items():
        parameters |= {
            f"{name}.head": classifier.head,
            f"{name}.labels": f"{name}.txt",
            f"{name}.top_k": str(classifier.top_k),
        }
    return parameters


def _texts(**values: Any) -> dict[str, str]:
    """Without those that are None."""
    return {name: _text(value) for name, value in values.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return ",".join(map(str, value))
    return str(value)
