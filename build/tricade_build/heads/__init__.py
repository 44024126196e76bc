"""Classifier heads: each file here registers one, by the name that the pipeline file uses."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..ends import Answer, Ended
from ..graph import Nodes


@dataclass(frozen=True)
class Want:
    """What the pipeline file says about the classifier's output."""

    top_k: int
    any_width: bool  # the crops' width differs from call to call
    normalize: bool = False  # vectors of length 1


@dataclass(frozen=True)
class Head:
    """One kind of answer; `names` gives one name for each INDEX, out of the labels and the number of classes."""

    name: str
    end: Callable[[Nodes, Answer, Want], Ended]
    names: Callable[[Sequence[str], int], tuple[str, ...]]
    keys: frozenset[str] = frozenset({"labels", "top_k"})  # keys of a classifier that concern some heads only
    unique: bool = True  # each label differs from the others

    @property
    def labelled(self) -> bool:
        return "labels" in self.keys


HEADS: dict[str, Head] = {}


def register(head: Head) -> None:
    HEADS[head.name] = head


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
