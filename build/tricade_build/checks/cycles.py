"""Steps of an ensemble that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from . import register
from .finding import Finding, error
from .flow import Step, flows
from .repository import Repository


def check(repository: Repository) -> Iterator[Finding]:
    for flow in flows(repository):
        if circle := _circle(list(flow.steps)):
            yield error(
                flow.ensemble.name,
                f"expected an order in which each step has what it takes; these wait for each other: "
                f"{', '.join(step.model.name for step in circle)}",
                flow.ensemble.rebuild,
            )


def _circle(steps: list[Step]) -> list[Step]:
    """What is left once steps that need nothing of the rest, or give nothing to it, are taken away."""
    while True:
        made = {name for step in steps for name in step.outputs.values()}
        used = {name for step in steps for name in step.inputs.values()}
        left = [
            step
            for step in steps
            if not made.isdisjoint(step.inputs.values()) and not used.isdisjoint(step.outputs.values())
        ]
        if len(left) == len(steps):
            return left
        steps = left


register(check)
