"""How the answers to crops are compared: each file here registers one kind, by the name of the classifier's head."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tricade.stage import Arrays

from ..tally import Compared


@dataclass(frozen=True)
class Reading:
    """What it takes to read a classifier's answers."""

    names: Sequence[str]  # one for each INDEX; for `ctc` the alphabet, the blank first
    threshold: float  # scores below are no answer (`sigmoid`)


@dataclass(frozen=True)
class Answer:
    """One crop: two answers compared, and their scores (fp32's, the candidate's) where they have one."""

    compared: Compared
    scores: tuple[float, float] | None = None


@dataclass(frozen=True)
class Kind:
    """`compare` takes both networks' outputs for the same n crops; `measure` says what they agree in."""

    head: str
    measure: str
    compare: Callable[[Arrays, Arrays, Reading], Iterator[Answer]]
    exact: bool = True  # answers are either equal or not


KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    KINDS[kind.head] = kind


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
