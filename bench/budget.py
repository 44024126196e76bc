"""A latency budget, `python -m bench.budget`: for one caller, where every millisecond of a call goes.

All figures are means over the same calls, as means add up. The client's parts are timed around gRPC; the
wire is a round trip of the same request to a model that is not there: encoded, sent, parsed and refused. The server's
are Triton's statistics: steps that a call waits for one after the other, and what the whole took beyond them. Parts
that are measured apart must come to what a call takes in all, or the budget says that it does not add up.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import text_format
from rich.console import Console
from rich.table import Table
from tritonclient import grpc as triton
from tritonclient.grpc.model_config_pb2 import ModelConfig
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from tricade_client import Client
from tricade_client.triton import TritonTransport
from tricade_server.process import Endpoints
from tricade_server.serve import serving
from tricade_tune.host import free_ports
from tricade_tune.served import PARTS

from . import ROOT
from .machine import machine, warning
from .moved import Moved, moved, moved_inline
from .processes import interrupt_on_signals
from .repository import built
from .steps import Spent, Step, critical_path, spent_from, steps_of
from .workloads import Workload, workloads

NOBODY = "nobody"  # a model that no repository has
TOLERANCE = 0.1
WARM_UP, LEAST = 5, 10  # calls


@dataclass(frozen=True)
class Budget:
    """Milliseconds of one call: the client's, the wire's, the server's steps and the rest of the server's."""

    workload: str
    calls: int
    encode_ms: float
    wire_ms: float
    path: Sequence[Step]
    beside: Sequence[Step]
    server_ms: float
    decode_ms: float
    measured_ms: float
    moved: Mapping[str, Moved]  # by model, for the first picture
    inline: Mapping[str, Moved]  # the same without the frame store

    @property
    def between_ms(self) -> float:
        """What the server took beyond the steps, to pass tensors on and to answer; below 0 where steps overlap: one is
        still giving its outputs back when the next begins."""
        return self.server_ms - sum(step.ms for step in self.path)

    @property
    def sum_ms(self) -> float:
        return self.encode_ms + self.wire_ms + self.server_ms + self.decode_ms

    @property
    def adds_up(self) -> bool:
        return abs(self.sum_ms / self.measured_ms - 1) <= TOLERANCE


class Watched:
    """Triton's service, and when its last inference began and ended."""

    def __init__(self, service: Any) -> None:
        self._service = service
        self.begin_s = self.end_s = 0.0
        self.message: Any = None

    def ModelInfer(self, message: Any, **options: Any) -> Any:  # noqa: N802 - the service's name
        self.message, self.begin_s = message, time.perf_counter()
        answer = self._service.ModelInfer(message, **options)
        self.end_s = time.perf_counter()
        return answer

    def refused(self) -> float:
        """Seconds in which the last inference's request goes to the server, and comes back undone."""
        message = type(self.message)()
        message.CopyFrom(self.message)
        message.model_name = NOBODY
        begin = time.perf_counter()
        try:
            self._service.ModelInfer(message)
        except grpc.RpcError:
            return time.perf_counter() - begin
        raise RuntimeError(f"expected no model {NOBODY!r}, the server has one")


def budget_of(workload: Workload, repository: Path, url: str, *, seconds: float) -> Budget:
    """Call for so long, one call at a time, and a refused one after each."""
    ensemble = text_format.Parse((repository / workload.pipeline / "config.pbtxt").read_text(), ModelConfig())
    with triton.InferenceServerClient(url) as client, grpc.insecure_channel(url) as channel:
        watched = Watched(GRPCInferenceServiceStub(channel))
        transport = TritonTransport(watched, channel.close, url)
        with Client(url, workload.pipeline, timeout_s=120, transport=transport) as pipeline:
            for _ in range(WARM_UP):
                _call(pipeline, watched, workload.pictures[0])
            before, end = _settled(client), time.perf_counter() + seconds
            times: list[tuple[float, ...]] = []
            while time.perf_counter() < end or len(times) < LEAST:
                times.append(_call(pipeline, watched, workload.pictures[len(times) % len(workload.pictures)]))
            after = _settled(client)
    encode, wire, decode, measured = (1e3 * sum(part) / len(times) for part in zip(*times, strict=True))
    spent = {name: now.since(before.get(name, Spent(0, (0.0,) * len(PARTS), 0.0))) for name, now in after.items()}
    steps = steps_of(ensemble, spent)
    path = critical_path(steps)
    whole = spent[workload.pipeline]
    return Budget(
        workload.name,
        len(times),
        encode,
        wire,
        path,
        [step for step in steps if step not in path],
        whole.whole_ms / whole.inferences,
        decode,
        measured,
        moved(repository, workload.pipeline, workload.pictures[0]),
        moved_inline(repository, workload.pipeline, workload.pictures[0]),
    )


def _settled(client: Any) -> dict[str, Spent]:
    """Statistics once they no longer change: Triton counts a call after it has answered it."""
    before: dict[str, Spent] = {}
    now = spent_from(client.get_inference_statistics())
    while before != now:
        time.sleep(0.05)
        before, now = now, spent_from(client.get_inference_statistics())
    return now


def _call(pipeline: Client, watched: Watched, picture: bytes) -> tuple[float, float, float, float]:
    """Seconds: encoding, the wire, decoding, the whole call."""
    begin = time.perf_counter()
    found = pipeline.detect(picture)
    found.detections  # noqa: B018 - reading it is what decodes
    end = time.perf_counter()
    return watched.begin_s - begin, watched.refused(), end - watched.end_s, end - begin


def main() -> int:
    """Exit code: 0 all budgets add up, 1 one does not."""
    interrupt_on_signals()
    parser = argparse.ArgumentParser(prog="python -m bench.budget", description=__doc__)
    parser.add_argument("--workloads", nargs="+", metavar="PATTERN", default=["text-small", "squares-10-small"])
    parser.add_argument("--seconds", type=float, default=10.0, help="of calls to each (10)")
    parser.add_argument("--output", type=Path, default=ROOT / "out" / "budget.json")
    options = parser.parse_args()
    about, chosen = machine(), workloads(options.workloads)
    with ExitStack() as stack:
        stack.enter_context(Console(stderr=True).status("measuring", refresh_per_second=2))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        repository = built({workload.pipeline for workload in chosen}, folder)
        endpoints = Endpoints("127.0.0.1", *free_ports(3))
        stack.enter_context(serving(repository, endpoints, say=lambda _: None))
        url = f"127.0.0.1:{endpoints.grpc_port}"
        budgets = [budget_of(workload, repository, url, seconds=options.seconds) for workload in chosen]
    for budget in budgets:
        Console(width=None if sys.stdout.isatty() else 110).print(_table(budget))
    for note in warning(about["load_before"]):
        Console().print(note, markup=False)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"machine": about, "budgets": [_plain(each) for each in budgets]}, indent=1))
    return 0 if all(budget.adds_up for budget in budgets) else 1


def _table(budget: Budget) -> Table:
    table = Table(title=f"{budget.workload}, {budget.calls} calls, means in ms", title_justify="left")
    for head in ("part", "queue", "input", "infer", "output", "in all", "share", "kB in", "out"):
        table.add_column(head, justify="left" if head == "part" else "right")

    def row(name: str, ms: float, step: Step | None = None) -> None:
        columns = [f"{part:.2f}" for part in step.parts_ms] if step else [""] * len(PARTS)
        bytes_ = budget.moved[step.model] if step else None
        moved = [f"{bytes_.given / 1e3:.1f}", f"{bytes_.answered / 1e3:.1f}"] if bytes_ else []
        table.add_row(name, *columns, f"{ms:.2f}", f"{ms / budget.measured_ms:.0%}", *moved)

    row("client: encode", budget.encode_ms)
    row("wire, there and back", budget.wire_ms)
    for step in budget.path:
        row(_name(step), step.ms, step)
    row("server: between the steps", budget.between_ms)
    row("client: decode", budget.decode_ms)
    table.add_section()
    row("sum", budget.sum_ms)
    row("measured" if budget.adds_up else "measured: DOES NOT ADD UP", budget.measured_ms)
    for step in budget.beside:
        row(f"meanwhile: {_name(step)}", step.ms, step)
    kept, inline = (_whole(each) / 1e3 for each in (budget.moved, budget.inline))
    table.caption = f"{kept:.1f} kB between processes; without the frame store {inline:.1f} kB"
    table.caption_justify = "left"
    return table


def _whole(moved: Mapping[str, Moved]) -> int:
    return sum(each.given + each.answered for each in moved.values())


def _name(step: Step) -> str:
    return f"{step.model}, last of {1 + step.calls:.3g} batches" if step.calls else step.model


def _plain(budget: Budget) -> dict[str, Any]:
    def plain(steps: Sequence[Step]) -> list[dict[str, Any]]:
        return [vars(step) | {"ms": step.ms} for step in steps]

    bytes_ = {
        name: {model: vars(each) for model, each in getattr(budget, name).items()} for name in ("moved", "inline")
    }
    derived = {"between_ms": budget.between_ms, "sum_ms": budget.sum_ms, "adds_up": budget.adds_up}
    return vars(budget) | derived | bytes_ | {"path": plain(budget.path), "beside": plain(budget.beside)}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("bench: stopped before the end")
