"""`make bench`: one call to the served pipeline against the same steps in one process."""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import skimage
from rich.console import Console
from rich.table import Table

from tricade_build.build import build
from tricade_build.local import LocalPipeline
from tricade_client import Client
from tricade_server.process import Endpoints
from tricade_server.serve import serving

from . import pieces
from .turns import Measured, in_turns

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))
import cascade  # noqa: E402

ONE_CALL = "one call"
IN_PROCESS = "in process"


def main() -> None:
    options = _options()
    with ExitStack() as stack:
        repository = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))) / "repository"
        build(ROOT / "pipelines" / "text.yaml", repository=repository)
        build(cascade.write(repository.parent / "squares"), repository=repository)
        endpoints = _free_endpoints()
        stack.enter_context(serving(repository, endpoints, say=Console(stderr=True).print))
        results = [
            _compare(repository, endpoints, pipeline, name, picture, callers, options)
            for pipeline, name, picture in _workloads()
            if pipeline in options.pipelines
            for callers in options.callers
        ]
    alone = {
        piece: {way: found.percentile(50) for way, found in ways.items()} for piece, ways in pieces.measured().items()
    }
    _print(results, alone)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"calls": results, "pieces_p50_ms": alone}, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="about how long a round takes each way")
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--pipelines", nargs="+", default=["text", "squares"])
    parser.add_argument("--output", type=Path, default=ROOT / "out" / "bench.json")
    return parser.parse_args()


def _free_endpoints() -> Endpoints:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return Endpoints("127.0.0.1", *(each.getsockname()[1] for each in sockets))


def _workloads() -> list[tuple[str, str, bytes]]:
    """Pipeline, what it is shown, and that."""
    page = (Path(skimage.__file__).parent / "data" / "page.png").read_bytes()
    return [
        ("text", "page.png, 384 × 191, 7 lines", page),
        ("squares", "320 × 320, nothing", cascade.picture()),
        ("squares", "320 × 320, 10 objects", cascade.picture(cascade.objects(10))),
        ("squares", "1920 × 1920 JPEG, 10 objects", cascade.picture(cascade.objects(10), scale=6, form="JPEG")),
    ]


def _compare(
    repository: Path,
    endpoints: Endpoints,
    pipeline: str,
    name: str,
    picture: bytes,
    callers: int,
    options: argparse.Namespace,
) -> dict[str, object]:
    local = LocalPipeline(repository, pipeline)
    image = np.empty(1, np.object_)
    image[0] = picture
    with Client(f"127.0.0.1:{endpoints.grpc_port}", pipeline, timeout_s=120) as client:
        ways = {ONE_CALL: lambda: client.detect(picture), IN_PROCESS: lambda: local({"IMAGE": image})}
        once = in_turns(ways, callers=1, rounds=1, calls=3)[IN_PROCESS].percentile(50) / 1e3
        calls = max(1 if callers > 1 else 3, round(options.seconds / once / callers))
        found = in_turns(ways, callers=callers, rounds=options.rounds, calls=calls)
    local.close()
    return {"pipeline": pipeline, "picture": name, "callers": callers} | _figures(found)


def _figures(found: dict[str, Measured]) -> dict[str, object]:
    one, local = found[ONE_CALL], found[IN_PROCESS]
    return {
        "one_call_p50_ms": one.percentile(50),
        "one_call_p99_ms": one.percentile(99),
        "in_process_p50_ms": local.percentile(50),
        "p50_ratio": one.percentile(50) / local.percentile(50),
        "one_call_per_s": one.rate,
        "in_process_per_s": local.rate,
        "rate_ratio": one.rate / local.rate,
    }


def _print(results: list[dict[str, object]], alone: dict[str, dict[str, float]]) -> None:
    table = Table(title="One call to the served pipeline against the same steps in one process", title_justify="left")
    heads = (
        "pipeline",
        "picture",
        "callers",
        "p50 ms",
        "p99 ms",
        "in process p50",
        "ratio",
        "calls/s",
        "in process",
        "ratio",
    )
    for head in heads:
        table.add_column(head, justify="left" if head in heads[:2] else "right")
    for row in results:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=150).print(table)
    for piece, ways in alone.items():
        Console(width=150).print(f"{piece}, one core: " + ", ".join(f"{way} {ms:.2f} ms" for way, ms in ways.items()))


if __name__ == "__main__":
    main()
