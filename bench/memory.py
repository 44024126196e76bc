"""What a server keeps, `python -m bench.memory`: the memory of all its processes over many calls of mixed pictures."""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tricade_client import Client
from tricade_server.process import Endpoints
from tricade_server.serve import serving
from tricade_tune.host import free_ports, processes

from .processes import interrupt_on_signals
from .repository import built
from .workloads import workloads

MIB = 2**20
CALLERS = 8


def proportional_bytes(pid: int) -> int:
    """What a process has in memory, pages that are shared in parts (proc(5): Pss)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> int:
    """Exit code: 1 where the last tenth of the calls has more than the second by a tenth."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000)
    options = parser.parse_args()
    interrupt_on_signals()
    (mixed,) = workloads(["squares-mixed"])
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        endpoints = Endpoints("127.0.0.1", *free_ports(3))
        with serving(built(["squares"], Path(folder)), endpoints, say=lambda _: None):
            names = processes()
            rows = [{pid: proportional_bytes(pid) for pid in names}]
            with Client(f"127.0.0.1:{endpoints.grpc_port}", "squares") as client, ThreadPoolExecutor(CALLERS) as pool:
                for _ in range(10):
                    pictures = islice(cycle(mixed.pictures), options.calls // 10)
                    list(pool.map(lambda picture: len(client.detect(picture)), pictures))
                    rows.append({pid: proportional_bytes(pid) for pid in names})
    models = list(dict.fromkeys(names.values()))
    table = Table("calls", *models, "all", title="MiB")
    for part, row in enumerate(rows):
        by_model = [sum(size for pid, size in row.items() if names[pid] == model) / MIB for model in models]
        table.add_row(str(part * options.calls // 10), *(f"{size:.0f}" for size in [*by_model, sum(by_model)]))
    Console(width=140).print(table)
    second, last = sum(rows[2].values()), sum(rows[-1].values())
    Console().print(f"from the second tenth to the last: {last / second - 1:+.1%}", markup=False)
    return 0 if last <= 1.1 * second else 1


if __name__ == "__main__":
    sys.exit(main())
