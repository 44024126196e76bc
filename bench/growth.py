"""How a call grows with what is in its picture, `python -m bench.growth`: p50 against the straight line from the fewest
objects to the most. Pictures are 640 × 640, by turns; one caller."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import cascade
from rich.console import Console
from rich.table import Table

from tricade_client import Client
from tricade_server.process import Endpoints
from tricade_server.serve import serving
from tricade_tune.host import free_ports

from .processes import interrupt_on_signals
from .repository import built

OBJECTS = (1, 2, 5, 10, 20, 50, 63, 64, 65, 100, 128, 129, 150, 200, 250, 300)
MOST = 1.2  # times the straight line


def against_line(p50_ms: Mapping[int, float]) -> dict[int, float]:
    """Each count's p50 as a multiple of the straight line through the fewest and the most objects."""
    fewest, most = min(p50_ms), max(p50_ms)
    slope = (p50_ms[most] - p50_ms[fewest]) / (most - fewest)
    return {count: ms / (p50_ms[fewest] + slope * (count - fewest)) for count, ms in p50_ms.items()}


def p50_by_count(call: Callable[[bytes], int], *, rounds: int) -> dict[int, float]:
    """Medians over rounds, in each of which every picture has its turn; who miscounts is an error."""
    pictures = {count: cascade.picture(cascade.objects(count, seed=1), scale=2, form="JPEG") for count in OBJECTS}
    times: dict[int, list[float]] = defaultdict(list)
    for each in range(rounds + 2):  # two to warm up
        for count, picture in pictures.items():
            began_s = time.perf_counter()
            found = call(picture)
            if found != count:
                sys.exit(f"growth: expected {count} objects, found {found}")
            if each >= 2:
                times[count].append(1e3 * (time.perf_counter() - began_s))
    return {count: statistics.median(some) for count, some in times.items()}


def main() -> int:
    """Exit code: 1 where a count is too far above the line."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    interrupt_on_signals()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        endpoints = Endpoints("127.0.0.1", *free_ports(3))
        repository, url = built(["squares"], Path(folder)), f"127.0.0.1:{endpoints.grpc_port}"
        with serving(repository, endpoints, say=lambda _: None), Client(url, "squares") as client:
            p50_ms = p50_by_count(lambda picture: len(client.detect(picture)), rounds=options.rounds)
    table = Table("objects", "p50 ms", "µs an object beyond the first", "÷ straight line")
    for count, share in against_line(p50_ms).items():
        more = "" if count == 1 else f"{1e3 * (p50_ms[count] - p50_ms[1]) / (count - 1):.0f}"
        table.add_row(str(count), f"{p50_ms[count]:.1f}", more, f"{share:.2f}")
    Console().print(table)
    return 0 if max(against_line(p50_ms).values()) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
