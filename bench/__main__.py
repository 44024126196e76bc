"""`make bench`: one call to the served pipeline against the same steps in one process and against two calls.
`make bench-peers`: against other ways to serve them.

Contestants take turns, round by round, with the same pictures. Who answers otherwise is named and not measured.
"""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from tricade_server.process import Endpoints
from tricade_server.serve import serving
from tricade_tune.host import free_ports

from . import pieces
from .contestants import HERE
from .machine import machine, versions, warning
from .measure import Cell, Measuring
from .options import chosen, parsed, plan_of
from .peers.pipeline import Place
from .plots import write_plots
from .processes import interrupt_on_signals
from .report import Refused, notes, print_cells, write_json
from .repository import built, without_ring

TABLE_WIDTH = 170  # where nobody says how wide lines may be


def main() -> int:
    """Exit code: 0 something was measured, 1 nothing was."""
    interrupt_on_signals()
    options = parsed(__doc__)
    about = {
        "machine": machine(),
        "versions": versions(peers=not set(options.contestants) <= set(HERE)),
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    with Console(stderr=True).status("building", refresh_per_second=2) as status:
        cells, refused = measured(options, status.update)
        status.update("the stages' own arithmetic")
        alone = {} if options.no_pieces else pieces.medians_ms()
    console = Console(width=None if sys.stdout.isatty() else TABLE_WIDTH)
    print_cells(console, cells, refused)
    for piece, ways in alone.items():
        console.print(f"{piece}, one core: " + ", ".join(f"{way} {ms:.2f} ms" for way, ms in ways.items()))
    for note in [*notes(cells), *warning(about["machine"]["load_before"])]:
        console.print(note, markup=False)
    write_json(options.output, cells, refused, about | {"load_after": os.getloadavg()[0]}, alone)
    plots = [] if options.no_plots else write_plots(options.output.parent, options.output.stem, cells)
    console.print(f"every round: {options.output}; plots: {len(plots)} beside it", markup=False)
    return 0 if cells else 1


def measured(options: Namespace, say: Callable[[str], None]) -> tuple[list[Cell], Refused]:
    """Build, start, measure, stop."""
    workloads = chosen(options)
    pipelines = list(dict.fromkeys(workload.pipeline for workload in workloads))
    cells: list[Cell] = []
    refused: dict[tuple[str, str], str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        repository = built(pipelines, folder)
        plain = without_ring(repository, folder / "plain")
        endpoints = Endpoints("127.0.0.1", *free_ports(3))
        say("starting Triton")
        stack.enter_context(serving(repository, endpoints, say=say))
        for pipeline in pipelines:
            place = Place(plain, pipeline, 0, options.workers, options.threads)
            url = f"127.0.0.1:{endpoints.grpc_port}"
            with Measuring(plan_of(options, pipeline), place, url=url, say=say) as measuring:
                for workload in workloads:
                    cells += measuring.cells(workload) if workload.pipeline == pipeline else ()
            refused |= measuring.refused
    return cells, refused


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("bench: stopped before the end")
