"""What the models of a served repository did between two moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tricade_tune.host import SERVER
from tricade_tune.served import PARTS, Moment, Server, Work, served

__all__ = ["Moment", "Server", "Work", "between", "served"]

ASKED = ("weighty", "weighty_detector", "weighty_colour")


def between(before: Moment, after: Moment, stubs: Mapping[int, str]) -> dict[str, Any]:
    """`stubs` are the server's processes and their models; `calls` are requests to the ensemble, without one to the
    detector, else to the classifier, run-ups among them. By model: requests a call, rows of an execution, mean ms of a
    request by part, the part of the time in which an execution was under way, processor ms a call and how busy a
    process was with that."""
    lasted_s = after.at_s - before.at_s
    since = {name: work.since(before.work[name]) for name, work in after.work.items()}
    calls = next((since[name].requests for name in ASKED if since[name].requests), 1)
    found = {}
    for name in since.keys() | after.cpu_s.keys():
        row: dict[str, Any] = {}
        work = since.get(name)
        if work and work.requests:
            row |= {"requests_a_call": work.requests / calls, "rows": work.rows, "executions": work.executions}
            row |= {f"{part}_ms": ms / work.requests for part, ms in zip(PARTS, work.parts_ms, strict=True)}
            row |= {"rows_an_execution": work.rows / max(1, work.executions)}
            row |= {"executing": work.executing_ms / 1e3 / lasted_s}
        count = sum(model == name for model in stubs.values())
        if count:
            taken_s = after.cpu_s[name] - before.cpu_s[name]
            row |= {"processes": count, "cpu_ms_a_call": 1e3 * taken_s / calls}
            row |= {"cpu_busy_each": taken_s / lasted_s / count}
        if row:
            found[name] = row
    return {
        "served_calls": calls,
        "steps": dict(sorted(found.items(), key=lambda item: (item[0] == SERVER, item[0]))),
        "idle_cores": (after.idle_s - before.idle_s) / lasted_s,
    }
