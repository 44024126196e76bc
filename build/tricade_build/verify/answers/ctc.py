"""`ctc`: the share of characters that need no edit (Levenshtein 1966)."""

from __future__ import annotations

from collections.abc import Iterator

from tricade.ctc import text_of
from tricade.stage import Arrays

from ..tally import Compared
from . import Answer, Kind, Reading, register


def compare(reference: Arrays, candidate: Arrays, reading: Reading) -> Iterator[Answer]:
    """INDEX, SCORE (n, steps)."""
    for crop in range(len(reference["INDEX"])):
        (expected, sure), (got, as_sure) = (
            text_of(outputs["INDEX"][crop], outputs["SCORE"][crop], reading.names) for outputs in (reference, candidate)
        )
        lost = edits(expected, got)
        compared = Compared(
            lost=lost,
            points=len(expected),
            what=f"{lost} of {len(expected)} characters",
            reference=f'"{expected}"',
            candidate=f'"{got}"',
        )
        yield Answer(compared, (sure, as_sure))


def edits(one: str, other: str) -> int:
    """The fewest characters to insert, remove or replace that make one the other (Wagner and Fischer 1974)."""
    costs = list(range(len(other) + 1))
    for row, character in enumerate(one, start=1):
        diagonal, costs[0] = costs[0], row
        for column, wanted in enumerate(other, start=1):
            cheapest = min(diagonal + (character != wanted), costs[column] + 1, costs[column - 1] + 1)
            diagonal, costs[column] = costs[column], cheapest
    return costs[-1]


register(Kind("ctc", "characters that agree", compare))
