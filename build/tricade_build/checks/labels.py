"""Label files against what the networks can answer, and against themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tricade.crop import Crop
from tricade.label import Label

from ..heads import HEADS
from . import register
from .finding import Finding, error, warning
from .flow import Flow, Step, flows
from .repository import Model, Repository, Unread


@dataclass(frozen=True)
class Names:
    """One label file as `label` has read it; `network` is None where the ensemble does not show whose it is."""

    label: Model
    file: str
    names: tuple[str, ...]
    network: Model | None
    unique: bool


def check(repository: Repository) -> Iterator[Finding]:
    for flow in flows(repository):
        for step, stage in flow.staged(Label):
            for names in _names(flow, step, stage):
                yield from _count(names)
                yield from _repeated(names)


def _names(flow: Flow, step: Step, stage: Label) -> Iterator[Names]:
    parameters = step.model.spec.parameters
    finders = [flow.source(crop, each.finder.tensor) for crop, each in flow.staged(Crop)]
    detector = finders[0] if len(finders) == 1 else None
    yield Names(step.model, parameters["detector.labels"], stage.classes, detector, unique=True)
    for name, head in stage.heads.items():
        if head.settings.labels:
            network = flow.source(step, f"{name.upper()}_INDEX")
            yield Names(step.model, head.settings.labels, head.names, network, HEADS[head.settings.head].unique)


def classes_of(network: Model) -> int | None:
    """As the build has recorded it, else as the graph's last weights show; None where neither tells."""
    if not isinstance(network.records, Unread):
        for record in network.records.values():
            shapes = record.get("shapes")
            if isinstance(shapes, dict) and isinstance(shapes.get("classes"), int):
                return int(shapes["classes"])
    return network.graph.classes if network.graph else None


def _count(names: Names) -> Iterator[Finding]:
    classes = classes_of(names.network) if names.network else None
    if names.network and classes is not None and classes != len(names.names):
        yield error(
            names.label.name,
            f"expected {classes} names in {names.file}, as {names.network.name} has {classes} classes; "
            f"got {len(names.names)}",
            f"correct the file, or {names.label.rebuild}",
        )


def _repeated(names: Names) -> Iterator[Finding]:
    places: dict[str, int] = {}
    for line, name in enumerate(names.names if names.unique else (), start=1):
        if name in places:
            yield warning(
                names.label.name,
                f"expected names that differ in {names.file}; {name!r} is in lines {places[name]} and {line}",
                "give each class a name of its own",
            )
        places.setdefault(name, line)


register(check)
