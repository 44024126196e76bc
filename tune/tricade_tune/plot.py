"""What was tried as a picture: processes against p99, the frontier, the target."""

from __future__ import annotations

import math
from pathlib import Path

from .search import Goal, Tried, frontier
from .setting import Setting

# Okabe and Ito's colours, told apart by colour-blind readers too.
FRONTIER, OTHERS, TARGET, CHOICE = "#0072B2", "#999999", "#D55E00", "#009E73"


def write_plot(file: Path, tried: Tried, goal: Goal, *, choice: Setting, title: str) -> None:
    """A PNG, written beside and renamed."""
    from matplotlib.figure import Figure  # takes a second to import
    from matplotlib.ticker import MaxNLocator

    edge = [(setting.processes, tried[setting].p99_ms) for setting in frontier(tried)]
    others = [(setting.processes, each.p99_ms) for setting, each in tried.items() if math.isfinite(each.p99_ms)]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.axhline(goal.p99_ms, color=TARGET, linestyle="--", label=f"target, {goal.p99_ms:g} ms")
    axes.plot(*zip(*others, strict=True), "o", color=OTHERS, label="tried")
    axes.plot(*zip(*edge, strict=True), "o-", color=FRONTIER, label="frontier")
    axes.plot(choice.processes, tried[choice].p99_ms, "D", color=CHOICE, markersize=9, label="chosen")
    axes.set(title=title, xlabel="processes in all", ylabel="p99, ms", ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    figure.savefig(part, format="png", dpi=150)
    part.replace(file)
