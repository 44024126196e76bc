"""Rules of the pipeline file that concern several keys at once. Each yields `path: expected …; got …`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .families import AUTO, FAMILIES
from .heads import HEADS
from .spec import LABELS_FORM, Classifier, Network, Pipeline

RESERVED = ("preprocess", "detector", "crop", "label")
TURNED = "180"  # the label of an upright classifier that means upside down
WIDTH_STEP = 8  # pixels; recognizers make one step of eight columns


def problems_of(pipeline: Pipeline) -> Iterator[str]:
    """All broken rules, in the order of the file."""
    yield from _detector_problems(pipeline)
    yield from _batch_problems(pipeline.detector, "detector")
    for name, classifier in pipeline.classifiers.items():
        where = f"classifiers.{name}"
        yield from _name_problems(name, where)
        yield from _head_problems(classifier, where)
        yield from _batch_problems(classifier, where)
        yield from _widths_problems(classifier, where)
        yield from _class_problems(pipeline, classifier, where)
        yield from _upright_problems(pipeline, name, classifier)
    yield from _calibration_problems(pipeline)
    yield from _clashes(pipeline)
    if pipeline.max_images > pipeline.detector.max_batch:
        yield (
            f"limits.max_images: expected at most detector.max_batch, {pipeline.detector.max_batch}, "
            f"which takes the images of a request at once; got {pipeline.max_images}"
        )


def _detector_problems(pipeline: Pipeline) -> Iterator[str]:
    detector = pipeline.detector
    yield from _name_list_problems(detector.labels, "detector.labels")
    if detector.family == AUTO:
        return  # what follows is seen once the network has been looked at
    family = FAMILIES[detector.family]
    for key in sorted(frozenset().union(*(each.keys for each in FAMILIES.values())) - family.keys):
        if key in detector.model_fields_set:
            owners = ", ".join(sorted(name for name, each in FAMILIES.items() if key in each.keys))
            yield f"detector.{key}: expected only with family {owners}; got it with {family.name}; remove it"
    if family.finds_boxes and detector.candidates < detector.max_detections:
        yield (
            f"detector.candidates: expected at least detector.max_detections, {detector.max_detections}; "
            f"got {detector.candidates}"
        )
    if detector.tile and not family.finds_boxes:
        yield f"detector.tile: expected only with a family that finds boxes; got it with {family.name}; remove it"


def _batch_problems(network: Network, where: str) -> Iterator[str]:
    if network.opt_batch and network.opt_batch > network.max_batch:
        yield f"{where}.opt_batch: expected at most `max_batch`, {network.max_batch}; got {network.opt_batch}"


def _calibration_problems(pipeline: Pipeline) -> Iterator[str]:
    networks = (pipeline.detector, *pipeline.classifiers.values())
    precisions = {network.precision or pipeline.precision for network in networks}
    if "int8" in precisions and pipeline.calibration is None:
        yield (
            "calibration: missing; expected a folder of pictures to measure int8 ranges on, "
            "e.g. {images: samples/, count: 256}"
        )


def _name_problems(name: str, where: str) -> Iterator[str]:
    if name in RESERVED or name.startswith("turn_"):
        yield f"{where}: expected a name other than {', '.join(RESERVED)}, turn_…; got {name!r}"


def repeated(names: Sequence[str]) -> str | None:
    """What is wrong with a list of class names: one is given twice, or is empty; None if nothing is."""
    places: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if not name:
            return f"expected a name at each place; number {place} is empty"
        if name in places:
            return f"expected names that differ; {name!r} is given twice, as numbers {places[name]} and {place}"
        places[name] = place
    return None


def _name_list_problems(labels: tuple[str, ...] | str | None, where: str) -> Iterator[str]:
    if isinstance(labels, tuple) and (problem := repeated(labels)):
        yield f"{where}: {problem}"


def _head_problems(classifier: Classifier, where: str) -> Iterator[str]:
    """Keys that concern some heads only."""
    head = HEADS[classifier.head]
    if head.labelled and classifier.labels is None:
        yield f"{where}.labels: missing; expected {LABELS_FORM}"
    for key in ("labels", "top_k", "threshold", "normalize_embedding"):
        if key in classifier.model_fields_set and key not in head.keys:
            owners = ", ".join(sorted(name for name, each in HEADS.items() if key in each.keys))
            yield f"{where}.{key}: expected only with head {owners}; got it with {head.name}; remove it"
    if head.unique:
        yield from _name_list_problems(classifier.labels, f"{where}.labels")


def _widths_problems(classifier: Classifier, where: str) -> Iterator[str]:
    widths = classifier.widths
    if widths is None:
        return
    if not widths or list(widths) != sorted(set(widths)):
        yield f"{where}.widths: expected ascending widths; got {list(widths)}"
    elif widths[0] != classifier.size[1]:
        yield f"{where}.widths: expected the first to be the width of `size`, {classifier.size[1]}; got {widths[0]}"
    if uneven := [width for width in widths if width % WIDTH_STEP]:
        yield f"{where}.widths: expected multiples of {WIDTH_STEP}; got {uneven[0]}"
    if classifier.resize != "pad":
        yield f"{where}.resize: expected pad, as there are `widths`; got {classifier.resize!r}"


def _class_problems(pipeline: Pipeline, classifier: Classifier, where: str) -> Iterator[str]:
    known = pipeline.detector.labels
    if isinstance(known, tuple):
        yield from class_problems(classifier, known, where)
    names = classifier.labels
    if "top_k" in HEADS[classifier.head].keys and isinstance(names, tuple) and classifier.top_k > len(names):
        yield f"{where}.top_k: expected at most the {len(names)} labels; got {classifier.top_k}"


def class_problems(classifier: Classifier, known: tuple[str, ...], where: str) -> Iterator[str]:
    """`classes` that the detector does not find."""
    if unknown := [name for name in classifier.classes or () if name not in known]:
        yield f"{where}.classes: expected names out of detector.labels ({_few(known)}); got {unknown[0]!r}"


def upright_label_problems(names: tuple[str, ...], upright: str, where: str) -> Iterator[str]:
    """A classifier that tells upside down from upright has the label that says so."""
    if TURNED not in names:
        yield (
            f"{where}.upright: expected a classifier with the label {TURNED!r}, upside down; "
            f"{upright} has {_few(names)}"
        )


def _upright_problems(pipeline: Pipeline, name: str, classifier: Classifier) -> Iterator[str]:
    where = f"classifiers.{name}"
    if classifier.upright is None:
        if "upright_threshold" in classifier.model_fields_set:
            yield f"{where}.upright_threshold: expected only beside `upright`; remove it, or name a classifier there"
        return
    other = pipeline.classifiers.get(classifier.upright)
    if other is None or other is classifier:
        others = [key for key in pipeline.classifiers if key != name]
        yield f"{where}.upright: expected another classifier ({_few(others)}); got {classifier.upright!r}"
        return
    if other.upright is not None or other.head != "softmax":
        yield (
            f"{where}.upright: expected a classifier with head softmax and no `upright` of its own; "
            f"{classifier.upright} has head {other.head}" + (" and `upright`" if other.upright else "")
        )
    elif isinstance(other.labels, tuple):
        yield from upright_label_problems(other.labels, classifier.upright, where)
    if classifier.resize != "pad":
        yield f"{where}.resize: expected pad, as there is `upright`; got {classifier.resize!r}"


def _clashes(pipeline: Pipeline) -> Iterator[str]:
    """`a` and `a_edge` would both make A_EDGE_EMBEDDING."""
    for name in pipeline.classifiers:
        if f"{name}_edge" in pipeline.classifiers:
            yield (
                f"classifiers.{name}_edge: expected a name that is not {name}'s plus _edge, "
                "as both would name the same tensors; give it another name"
            )


def _few(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown}, … {len(names)} in all" if len(names) > 8 else shown or "there is none"
