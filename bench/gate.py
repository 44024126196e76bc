"""What CI holds one call to, `python -m bench.gate`: ratios out of one run, never milliseconds, with room for noise.

A limit fails where the whole interval of its ratio lies on the wrong side. The limits stand about a fifth beyond what
`docs/performance.md` reports ("One call against other ways to serve"), so that they tell of a change for the worse and
not of a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from .__main__ import TABLE_WIDTH, measured
from .contestants import QUICK
from .figures import figures_of
from .intervals import Interval
from .measure import Cell
from .options import parsed
from .processes import interrupt_on_signals
from .report import print_cells

ROUNDS, SECONDS = 7, 0.5


@dataclass(frozen=True)
class Limit:
    """Between `contestant`'s figure and tricade's of the same round: `least` for a p50, `most` for a rate."""

    workload: str
    callers: int
    contestant: str
    least_p50: float | None = None  # the other's p50 ÷ tricade's
    most_rate: float | None = None  # the other's calls/s ÷ tricade's

    def __str__(self) -> str:
        figure = f"p50 ÷ ≥ {self.least_p50}" if self.least_p50 else f"calls/s ÷ ≤ {self.most_rate}"
        return f"{self.workload}, callers {self.callers}, {self.contestant}: {figure}"

    def broken_by(self, found: Interval) -> bool:
        """Whether no part of the interval is within the limit."""
        return found.high < self.least_p50 if self.least_p50 else found.low > (self.most_rate or 0)


LIMITS = (
    Limit("squares-10-small", 1, "two-calls", least_p50=0.75),
    Limit("squares-10-small", 1, "in-process", least_p50=0.4),
    Limit("squares-10-small", 8, "two-calls", most_rate=1.2),
    Limit("squares-10-small", 8, "in-process", most_rate=1.95),
    Limit("squares-10-large", 1, "two-calls", least_p50=0.85),
    Limit("squares-10-large", 8, "two-calls", most_rate=0.9),
    Limit("squares-10-large", 8, "in-process", most_rate=1.4),
)


def problems(cells: Sequence[Cell], limits: Sequence[Limit] = LIMITS) -> Iterator[str]:
    """Limits that are broken, or that nothing was measured for."""
    by_place = {(cell.workload.name, cell.load.callers): figures_of(cell) for cell in cells}
    for limit in limits:
        figures = by_place.get((limit.workload, limit.callers), {}).get(limit.contestant)
        found = None
        if figures:
            found = figures.p50_ratio if limit.least_p50 else figures.rate_ratio
        if found is None:
            yield f"{limit}: not measured"
        elif limit.broken_by(found):
            yield f"{limit}: found {found.value:.2f}, in {found.low:.2f} to {found.high:.2f}"


def main() -> int:
    """Exit code: 1 where a limit is broken."""
    interrupt_on_signals()
    names = sorted({limit.workload for limit in LIMITS})
    arguments = ["--workloads", *names, "--contestants", *QUICK, "--callers", "1", "8", "--rounds", str(ROUNDS)]
    arguments += ["--seconds", str(SECONDS)]
    cells, refused = measured(parsed(__doc__, arguments), lambda _: None)
    console = Console(width=None if sys.stdout.isatty() else TABLE_WIDTH)
    print_cells(console, cells, refused)
    broken = list(problems(cells))
    for each in broken:
        console.print(f"broken: {each}", markup=False)
    console.print(f"gate: {len(LIMITS) - len(broken)} of {len(LIMITS)} limits hold", markup=False)
    return 1 if broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("gate: stopped before the end")
