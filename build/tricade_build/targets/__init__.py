"""Targets: each file here registers one thing that a network can be built into, by its name on the command line."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..networks import Job
from ..shapes import Shapes
from ..spec import Pipeline


@dataclass(frozen=True)
class Weights:
    """A network's files by their path in the model's folder; none of them where it is as it should be."""

    shapes: Shapes
    files: Mapping[str, bytes]

    @property
    def built(self) -> bool:
        return bool(self.files)


@dataclass(frozen=True)
class Target:
    """`check` raises `BuildError` for what it cannot do; `weights` sees the model's folder, and only reads it."""

    name: str
    check: Callable[[Pipeline], None]
    weights: Callable[[Job, Path], Weights]


TARGETS: dict[str, Target] = {}


def register(target: Target) -> None:
    TARGETS[target.name] = target


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
