"""Targets: each file here registers one thing that a network can be built into, by its name on the command line."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from ..made import Made, Work
from ..networks import Job
from ..spec import Pipeline


def _nothing(_: Pipeline) -> None:
    pass


@dataclass(frozen=True)
class Target:
    """What to do for a target.

    `check` raises `BuildError` for what it cannot do; `make` gives a network's files by name, and writes nothing.
    `lacks` says why this machine could not serve what it builds, "" where it could. Of those that it can serve,
    the one of the highest `rank` is taken where none is named; below 0, never.
    """

    name: str
    make: Callable[[Job, Work], dict[str, Made]]
    check: Callable[[Pipeline], None] = _nothing
    lacks: Callable[[], str] = lambda: ""
    rank: int = -1


TARGETS: dict[str, Target] = {}


def register(target: Target) -> None:
    TARGETS[target.name] = target


def chosen() -> tuple[str, str]:
    """The target that suits this machine, and why in a few words."""
    lacking = []
    for target in sorted(TARGETS.values(), key=lambda each: -each.rank):
        if lack := target.lacks():
            lacking.append(f"not {target.name}: {lack}")
        else:
            return target.name, "; ".join(lacking) or "this machine serves it"
    raise AssertionError("ONNX Runtime lacks nothing")


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
