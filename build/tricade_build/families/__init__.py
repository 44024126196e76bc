"""Detector families: each file here registers one, by the name that the pipeline file uses."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from ..ends import Ended, Raw
from ..graph import Nodes


@dataclass(frozen=True)
class Want:
    """What the pipeline file says about the detector's output."""

    size: tuple[int, int]  # height, width in pixels
    classes: int
    candidates: int


@dataclass(frozen=True)
class Family:
    """One layout of detector output; `finds_boxes` ends in CANDIDATES, else in MAP."""

    name: str
    finds_boxes: bool
    end: Callable[[Nodes, Raw, Want], Ended]


FAMILIES: dict[str, Family] = {}


def register(family: Family) -> None:
    FAMILIES[family.name] = family


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
