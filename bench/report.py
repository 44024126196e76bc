"""What a run found: a table for people, JSON with every round for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .figures import PERCENTILES, Figures, figures_of
from .intervals import CONFIDENCE, Interval
from .measure import Cell

HEADS = ("workload", "load", "contestant", "p50 ms", "p90 ms", "p99 ms", "calls/s", "p50 ÷", "calls/s ÷", "errors")
Refused = Mapping[tuple[str, str], str]


def print_cells(console: Console, cells: Sequence[Cell], refused: Refused) -> None:
    """Rows by workload, load and contestant; then who was not measured, and why."""
    title = "Median over rounds, and in brackets where it lies; ÷ is by tricade's of the same round"
    table = Table(title=title, title_justify="left")
    for place, head in enumerate(HEADS):
        table.add_column(head, justify="left" if place < 3 else "right")
    before = None
    for cell in cells:
        table.add_section()
        for name, figures in figures_of(cell).items():
            where = (cell.workload.name, str(cell.load))
            table.add_row(*(where if where != before else ("", "")), name, *_row(figures))
            before = where
    console.print(table)
    for (name, workload), why in refused.items():
        console.print(f"not measured: {name} on {workload}: {why}", markup=False)


def notes(cells: Sequence[Cell]) -> list[str]:
    """How to read the table, as far as it needs saying for this run."""
    figures = [found for cell in cells for found in figures_of(cell).values()]
    said = []
    if figures and (least := min(each.rate.coverage for each in figures)) < CONFIDENCE:
        said.append(f"The brackets hold the median with a chance of {least:.0%}; more --rounds raise it.")
    if any(found is None for each in figures for found in each.latency_ms.values()):
        said.append("– : fewer calls than that percentile takes; more --seconds or --rounds give them.")
    if late := sum(each.late for each in figures):
        said.append(
            f"{late} open-loop calls began late, the machine or all threads being busy; their latencies have it."
        )
    return said


def write_json(
    file: Path, cells: Sequence[Cell], refused: Refused, about: Mapping[str, Any], pieces: Mapping[str, Any]
) -> None:
    """Everything, every call's latency in microseconds' resolution."""
    found = {
        **about,
        "cells": [_cell(cell) for cell in cells],
        "not_measured": [
            {"contestant": name, "workload": workload, "why": why} for (name, workload), why in refused.items()
        ],
        "pieces_p50_ms": pieces,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")


def _row(figures: Figures) -> list[str]:
    return [
        *(_number(figures.latency_ms[percent]) for percent in PERCENTILES),
        _number(figures.rate),
        _number(figures.p50_ratio, empty=""),
        _number(figures.rate_ratio, empty=""),
        str(sum(figures.errors.values()) or ""),
    ]


def _number(found: Interval | None, *, empty: str = "–") -> str:
    return empty if found is None else f"{_short(found.value)} [{_short(found.low)} {_short(found.high)}]"


def _short(value: float) -> str:
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "workload": cell.workload.name,
        "pipeline": cell.workload.pipeline,
        "about": cell.workload.about,
        "loop": "closed" if cell.load.callers else "open",
        "callers": cell.load.callers,
        "offered_per_s": cell.load.rate,
        "contestants": {
            name: figures.plain() | {"rounds": [_round(each) for each in cell.rounds[name]]}
            for name, figures in figures_of(cell).items()
        },
    }


def _round(one: Any) -> dict[str, Any]:
    return {
        "rate": one.rate,
        "late": one.late,
        "errors": len(one.errors),
        "latency_ms": [round(latency, 3) for latency in one.latency_ms],
    }
