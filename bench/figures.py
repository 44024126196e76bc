"""From rounds to figures with their uncertainty, as tables, plots and JSON show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .contestants import TRICADE
from .intervals import Interval, median_of, percentile_of
from .load import Round
from .measure import Cell

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class Figures:
    """Of one contestant in one cell; ratios are to tricade in the same round, None for itself or without it."""

    latency_ms: Mapping[int, Interval | None]  # by percentile; None where there are too few calls
    rate: Interval
    p50_ratio: Interval | None
    rate_ratio: Interval | None
    errors: Mapping[str, int]
    calls: int
    late: int

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        plain = asdict(self)
        return plain | {"latency_ms": {f"p{percent}": found for percent, found in plain["latency_ms"].items()}}


def figures_of(cell: Cell) -> dict[str, Figures]:
    """By contestant, in the order in which they were given."""
    yardstick = cell.rounds.get(TRICADE)
    return {name: _figures(rounds, None if name == TRICADE else yardstick) for name, rounds in cell.rounds.items()}


def _figures(rounds: Sequence[Round], yardstick: Sequence[Round] | None) -> Figures:
    pairs = [] if yardstick is None else list(zip(rounds, yardstick, strict=True))
    answered = [(ours, theirs) for ours, theirs in pairs if ours.latency_ms and theirs.latency_ms]
    return Figures(
        latency_ms={percent: percentile_of(rounds, percent) for percent in PERCENTILES},
        rate=median_of([each.rate for each in rounds]),
        p50_ratio=median_of([_p50(ours) / _p50(theirs) for ours, theirs in answered]) if answered else None,
        rate_ratio=median_of([ours.rate / theirs.rate for ours, theirs in answered]) if answered else None,
        errors=dict(Counter(error for each in rounds for error in each.errors)),
        calls=sum(len(each.latency_ms) for each in rounds),
        late=sum(each.late for each in rounds),
    )


def _p50(one: Round) -> float:
    return median_of(one.latency_ms).value
