"""Numbers by which stages read the networks' answers: top_k, dim, indices of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tricade.crop import Crop
from tricade.label import Label
from tricade.turn import Turn

from . import register
from .finding import Finding, error, warning
from .flow import Flow, Step, flows
from .repository import Repository, tensors_of


def check(repository: Repository) -> Iterator[Finding]:
    for flow in flows(repository):
        crops = list(flow.staged(Crop))
        for step, stage in flow.staged(Label):
            yield from _lengths(flow, step, stage)
            yield from _same_classifiers(step, stage, crops)
            for crop_step, crop in crops:
                yield from _classes(stage, crop_step, crop)
            for turn_step, turn in flow.staged(Turn):
                yield from _turned(stage, turn_step, turn)


def _lengths(flow: Flow, step: Step, stage: Label) -> Iterator[Finding]:
    """A row of INDEX has top_k places (`ctc`: one for each step), one of EMBEDDING dim."""
    for name, head in stage.heads.items():
        embeds = head.settings.head == "embedding"
        tensor, parameter = ("EMBEDDING", "dim") if embeds else ("INDEX", "top_k")
        network = flow.source(step, f"{name.upper()}_{tensor}")
        given = tensors_of(network.config.output).get(tensor) if network else None
        asked = head.settings.dim if embeds else head.settings.top_k
        if head.settings.head == "ctc" and asked != 1:
            yield error(
                step.model.name,
                f"expected a {name}.top_k of 1 with head ctc, which reads one text; got {asked}",
                step.model.rebuild,
            )
        elif head.settings.head != "ctc" and network and given and given.dims != (asked,):
            yield error(
                step.model.name,
                f"expected parameter {name}.{parameter} to be the length of {network.name}'s {tensor} "
                f"{list(given.dims)}; got {asked}",
                step.model.rebuild,
            )


def _same_classifiers(step: Step, stage: Label, crops: Sequence[tuple[Step, Crop]]) -> Iterator[Finding]:
    """What is cut for a classifier is named, and what is named is cut."""
    if not crops:
        return
    cut = {name for _, crop in crops for name in crop.targets}
    for name in sorted(stage.heads.keys() ^ cut):
        lacking, having = (step, crops[0][0]) if name in cut else (crops[0][0], step)
        yield error(
            lacking.model.name,
            f"expected parameters {name}.…, as {having.model.name} has that classifier; there are none",
            lacking.model.rebuild,
        )


def _classes(stage: Label, step: Step, crop: Crop) -> Iterator[Finding]:
    for name, target in crop.targets.items():
        beyond = [index for index in target.classes or () if not 0 <= index < len(stage.classes)]
        if beyond:
            yield warning(
                step.model.name,
                f"expected {name}.classes from 0 to {len(stage.classes) - 1}, the detector's classes; got {beyond[0]}",
                step.model.rebuild,
            )


def _turned(stage: Label, step: Step, turn: Turn) -> Iterator[Finding]:
    settings = turn.settings
    names = stage.heads[settings.upright].names if settings.upright in stage.heads else None
    if names is not None and not 0 <= settings.turned < len(names):
        yield error(
            step.model.name,
            f"expected parameter turned from 0 to {len(names) - 1}, the classes of {settings.upright}; "
            f"got {settings.turned}",
            step.model.rebuild,
        )


register(check)
