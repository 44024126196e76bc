"""All measurements in the order of what they matter."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu.uninstalled import place_triton  # type: ignore[import-not-found]  # among the tests

from ..machine import machine
from .callers import Callers
from .cascades import Cascade
from .children import Child, children
from .engines import Rates, engines
from .options import Options
from .results import Results
from .served import served
from .variants import Edit, delayed, instances, unbatched, variant, without_ring

SERVER_S = 20.0  # to start one, warm it up and stop it


def measure(options: Options, results: Results) -> None:
    """Whatever of it is asked for and fits."""
    place_triton()
    repository = options.out / options.precision
    results.add("machine", **machine(), options={name: str(value) for name, value in vars(options).items()})
    with children(options.processes) as processes:
        rates: Rates = {}
        if "engines" in options.only:
            rates = engines(options, results, repository, brief=False)
        if set(options.only) & {"ensemble", "two-calls", "objects", "batching"}:
            _serve(options, results, repository, processes, rates, _main, {"batching": True})
        if "batching" in options.only:
            _serve(options, results, repository, processes, rates, _batching, {"batching": False}, unbatched)
            _batching_gain(results, options.precision)
        if "compare" in options.only:
            for other in filter(Path.is_dir, (options.out / name for name in options.compare)):
                rates = engines(options, results, other, brief=True)
                _serve(options, results, other, processes, rates, _compared, {"batching": True})


def _main(cascade: Cascade) -> None:
    options = cascade.options
    if "ensemble" in options.only:
        for callers in options.callers:
            cascade.ensemble(callers)
    if "two-calls" in options.only:
        for callers in options.two_callers:
            cascade.two_calls(callers)
    if "objects" in options.only:
        for count in options.objects:
            cascade.objects(count)
    if "batching" in options.only:
        _batching(cascade)


def _batching(cascade: Cascade) -> None:
    cascade.stream()
    cascade.classifier()


def _batching_gain(results: Results, precision: str) -> None:
    """What waiting for company brings, where both were measured."""
    for what in ("classifier alone", "open loop"):
        on, off = (results.found(what, precision=precision, batching=batching) for batching in (True, False))
        if on and off and off.get("p99_ms"):
            rates = on["calls_per_s"] / off["calls_per_s"]
            ratios = {f"{part}_ratio": on[f"{part}_ms"] / off[f"{part}_ms"] for part in ("p50", "p99")}
            results.add("batching gain", precision=precision, load=what, rate_ratio=rates, **ratios)


def _compared(cascade: Cascade) -> None:
    cascade.ensemble(cascade.options.busy)


def _serve(
    options: Options,
    results: Results,
    repository: Path,
    processes: list[Child],
    rates: Rates,
    load: Callable[[Cascade], None],
    about: dict[str, object],
    *edits: Edit,
) -> None:
    """A server for a copy of the repository, under load."""

    def started() -> dict[str, object]:
        with _copies(options, repository, edits) as (copy, plain), served(copy) as server:
            about_all = {"precision": repository.name, **about}
            cascade = Cascade(options, results, Callers(processes), server, plain, rates, about_all)
            if cascade.warm():
                load(cascade)
        return {}

    results.measure("served", SERVER_S, started, precision=repository.name, **about)


@contextmanager
def _copies(options: Options, repository: Path, edits: tuple[Edit, ...]) -> Iterator[tuple[Path, Path]]:
    """What is served, and the same for clients that run the stages themselves."""
    with tempfile.TemporaryDirectory(prefix=f"serving-{os.getpid()}-", dir=options.out) as folder:
        all_edits = (instances(options.instances), delayed(options.max_delay_us), *edits)
        copy = variant(repository, Path(folder) / "served", *all_edits)
        yield copy, variant(repository, Path(folder) / "plain", without_ring)
