"""Classifier heads: each file here registers one, by the name that the pipeline file uses."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..ends import Ended, Raw
from ..graph import Nodes


@dataclass(frozen=True)
class Want:
    """What the pipeline file says about the classifier's output."""

    top_k: int
    any_width: bool  # the crops' width differs from call to call


@dataclass(frozen=True)
class Head:
    """One kind of answer; `names` gives one name for each INDEX, out of the labels and the number of classes."""

    name: str
    end: Callable[[Nodes, Raw, Want], Ended]
    names: Callable[[Sequence[str], int], tuple[str, ...]]


HEADS: dict[str, Head] = {}


def register(head: Head) -> None:
    HEADS[head.name] = head


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
