"""A served repository, and what its models did between two moments."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonclient import grpc as triton

from tricade_server.process import Endpoints
from tricade_server.serve import serving

from ..processes import free_ports
from ..steps import PARTS
from .host import SERVER, cpu_s, idle_s, processes

ASKED = ("weighty", "weighty_detector", "weighty_colour")
COUNTED_S = 0.1  # after an answer Triton has counted it


@dataclass(frozen=True)
class Work:
    """Of a model since it was loaded: requests, rows in executions, milliseconds of requests by part as in `PARTS`, and
    of executions."""

    requests: int
    rows: int
    executions: int
    parts_ms: tuple[float, ...]
    executing_ms: float

    def since(self, before: Work) -> Work:
        parts = tuple(now - then for now, then in zip(self.parts_ms, before.parts_ms, strict=True))
        return Work(
            self.requests - before.requests,
            self.rows - before.rows,
            self.executions - before.executions,
            parts,
            self.executing_ms - before.executing_ms,
        )


@dataclass(frozen=True)
class Moment:
    """The work of all models and the processor seconds of the server and of each model's stubs, so far."""

    at_s: float
    work: Mapping[str, Work]
    cpu_s: Mapping[str, float]
    idle_s: float


@dataclass(frozen=True)
class Server:
    """A running one; `said` are the lines it began with, which tell of networks that fell back."""

    url: str
    said: list[str]
    stubs: Mapping[int, str]

    def moment(self) -> Moment:
        time.sleep(COUNTED_S)
        taken: Counter[str] = Counter()
        for pid, model in self.stubs.items():
            taken[model] += cpu_s(pid)  # type: ignore[assignment]
        with triton.InferenceServerClient(self.url) as client:
            statistics = client.get_inference_statistics()
        return Moment(time.monotonic(), {each.name: _work(each) for each in statistics.model_stats}, taken, idle_s())


@contextmanager
def served(repository: Path) -> Iterator[Server]:
    """Started and warm; gone on the way out."""
    endpoints, said = Endpoints("127.0.0.1", *free_ports(3)), list[str]()
    with serving(repository, endpoints, say=said.append):
        yield Server(f"127.0.0.1:{endpoints.grpc_port}", said, processes())


def between(before: Moment, after: Moment, server: Server) -> dict[str, Any]:
    """`calls` are requests to the ensemble, without one to the detector, else to the classifier, run-ups among them.
    By model: requests a call, rows of an execution, mean ms of a request by part, the part of the time in which an
    execution was under way, processor ms a call and how busy a process was with that."""
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
        count = sum(model == name for model in server.stubs.values())
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


def _work(statistics: Any) -> Work:
    return Work(
        statistics.inference_stats.success.count,
        statistics.inference_count,
        statistics.execution_count,
        tuple(getattr(statistics.inference_stats, part).ns / 1e6 for part in PARTS),
        sum(each.compute_infer.ns for each in statistics.batch_stats) / 1e6,
    )
