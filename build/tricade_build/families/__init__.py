"""Detector families: each file here registers one, by the name that the pipeline file uses."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..ends import Answer, Ended
from ..errors import FoldError
from ..graph import Nodes
from ..seams import NO_SEAMS, Seams
from ..want import Want

AUTO = "auto"  # in place of a name: the one family that fits

T = TypeVar("T")


def _no_hint(_answer: Answer, _want: Want) -> str:
    return ""


@dataclass(frozen=True)
class Family(Generic[T]):
    """One layout of detector output, and the rewrite of it.

    `layout` says in words what outputs it takes. `read` picks them out of what a network answers, None where they
    are not there; `rewrite` appends the nodes that make CANDIDATES of them or, where it does not find boxes, MAP.
    """

    name: str
    layout: Callable[[Want], str]
    read: Callable[[Answer, Want], T | None]
    rewrite: Callable[[Nodes, T, Want], Ended]
    hint: Callable[[Answer, Want], str] = _no_hint  # what else to say where it does not fit
    finds_boxes: bool = True
    suppressed: bool = False  # each thing has one box already: no non-maximum suppression unless it is asked for
    keys: frozenset[str] = frozenset()  # keys of `detector` that concern few families, this one among them
    seams: Seams = NO_SEAMS

    def fits(self, answer: Answer, want: Want) -> bool:
        return self._read(answer, want) is not None

    def end(self, nodes: Nodes, answer: Answer, want: Want) -> Ended:
        """Rewrite, or refuse with the layouts that came and would be right; names the families that fit."""
        found = self._read(answer, want)
        if found is None:
            hints = [hint for hint in (_fitting(answer, want), self.hint(answer, want)) if hint]
            raise FoldError(
                f"expected {self.layout(want)} (family {self.name}), found {answer.layout}"
                + "".join(f"; {hint}" for hint in hints[:1])
                + answer.rows_hint
            )
        return self.rewrite(nodes, found, want)

    def _read(self, answer: Answer, want: Want) -> T | None:
        """What was cut off concerns the family only that asked for it."""
        if answer.cut is not None and answer.cut.op_type not in self.seams.cuts:
            return None
        return self.read(answer, want)


FAMILIES: dict[str, Family[Any]] = {}


def register(family: Family[Any]) -> None:
    FAMILIES[family.name] = family


def seams() -> Seams:
    """Where any family may open a graph: a graph is opened alike for all, so that it can be said which one fits."""
    return Seams(
        cuts=frozenset().union(*(family.seams.cuts for family in FAMILIES.values())),
        sizes=frozenset().union(*(family.seams.sizes for family in FAMILIES.values())),
    )


def chosen(answer: Answer, want: Want) -> Family[Any]:
    """The one family that fits, else `FoldError`."""
    fitting = _names(answer, want)
    if len(fitting) == 1:
        return FAMILIES[fitting[0]]
    if fitting:
        raise FoldError(f"expected a network that one family fits; {', '.join(fitting)} fit {answer.layout}: name one")
    layouts = "".join(f"\n    {name}: {FAMILIES[name].layout(want)}" for name in sorted(FAMILIES))
    raise FoldError(f"expected a layout of these, found {answer.layout}{answer.rows_hint}{layouts}")


def _fitting(answer: Answer, want: Want) -> str:
    names = _names(answer, want)
    if not names:
        return ""
    return f"family {names[0]} fits" if len(names) == 1 else f"families {', '.join(names)} fit"


def _names(answer: Answer, want: Want) -> list[str]:
    return sorted(name for name, family in FAMILIES.items() if family.fits(answer, want))


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
