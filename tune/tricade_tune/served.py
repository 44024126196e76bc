"""A served repository, and what its models had done at a moment."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonclient import grpc as triton

from tricade_server.errors import LoadFailed
from tricade_server.process import Endpoints
from tricade_server.serve import serving
from tricade_server.stubs import StubWatch

from .host import cpu_s, free_ports, idle_s, processes

PARTS = ("queue", "compute_input", "compute_infer", "compute_output")
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
    """A running one; `said` are the lines it began with, `fell_back` networks that run on ONNX Runtime although
    they have a plan, and why."""

    url: str
    said: list[str]
    stubs: Mapping[int, str]
    fell_back: Mapping[str, str]
    watch: StubWatch

    def moment(self) -> Moment:
        time.sleep(COUNTED_S)
        taken: Counter[str] = Counter()
        for pid, model in self.stubs.items():
            taken[model] += cpu_s(pid)  # type: ignore[assignment]
        with triton.InferenceServerClient(self.url) as client:
            statistics = client.get_inference_statistics()
        return Moment(time.monotonic(), {each.name: _work(each) for each in statistics.model_stats}, taken, idle_s())

    def death(self) -> str:
        """Which process has died since it was started; "" where all live."""
        try:
            hurt = self.watch.hurt()
        except LoadFailed as error:
            return str(error)
        return f"a process of {' and of '.join(hurt)} has died; the log above may say why" if hurt else ""


@contextmanager
def served(repository: Path) -> Iterator[Server]:
    """Started and warm; gone on the way out."""
    endpoints, said = Endpoints("127.0.0.1", *free_ports(3)), list[str]()
    with serving(repository, endpoints, say=said.append) as running:
        url = f"127.0.0.1:{endpoints.grpc_port}"
        yield Server(url, said, processes(), running.fell_back, running.watch)


def _work(statistics: Any) -> Work:
    return Work(
        statistics.inference_stats.success.count,
        statistics.inference_count,
        statistics.execution_count,
        tuple(getattr(statistics.inference_stats, part).ns / 1e6 for part in PARTS),
        sum(each.compute_infer.ns for each in statistics.batch_stats) / 1e6,
    )
