"""A picture for each workload: latency and calls a second, by load and contestant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .figures import Figures, figures_of
from .intervals import Interval
from .measure import Cell


def write_plots(folder: Path, stem: str, cells: Sequence[Cell]) -> list[Path]:
    """`<stem>-<workload>.svg`; matplotlib is imported only here."""
    import matplotlib

    matplotlib.use("svg")
    names = list(dict.fromkeys(cell.workload.name for cell in cells))
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _written(folder / f"{stem}-{name}.svg", [cell for cell in cells if cell.workload.name == name])
        for name in names
    ]


def _written(file: Path, cells: Sequence[Cell]) -> Path:
    from matplotlib import pyplot

    found = [figures_of(cell) for cell in cells]
    contestants = list(dict.fromkeys(name for figures in found for name in figures))
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(2 + 2.5 * len(cells), 8), layout="constrained")
    figure.suptitle(f"{cells[0].workload.name}: {cells[0].workload.about}")
    width = 0.8 / len(contestants)
    for place, name in enumerate(contestants):
        mine = [(column, figures[name]) for column, figures in enumerate(found) if name in figures]
        columns = [column + (place - (len(contestants) - 1) / 2) * width for column, _ in mine]
        colour = f"C{place % 10}"
        _bars(above, columns, [_latency(figures) for _, figures in mine], width=width, colour=colour, label=name)
        _bars(below, columns, [figures.rate for _, figures in mine], width=width, colour=colour, label=name)
    for axes, unit in ((above, "p50, ms"), (below, "calls a second")):
        axes.set_ylabel(unit)
        axes.set_xticks(range(len(cells)), [str(cell.load) for cell in cells])
        axes.grid(axis="y", alpha=0.3)
    above.legend(ncols=2, fontsize="small")
    figure.savefig(file)
    pyplot.close(figure)
    return file


def _latency(figures: Figures) -> Interval:
    """p50; nothing where too few calls were answered."""
    return figures.latency_ms[50] or Interval(0, 0, 0, 0, 0)


def _bars(
    axes: Any, columns: Sequence[float], intervals: Sequence[Interval], *, width: float, colour: str, label: str
) -> None:
    """A bar each, with its interval as a whisker."""
    heights = [each.value for each in intervals]
    whiskers = [[each.value - each.low for each in intervals], [each.high - each.value for each in intervals]]
    axes.bar(columns, heights, width, yerr=whiskers, color=colour, label=label, error_kw={"linewidth": 0.8})
