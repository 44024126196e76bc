"""The networks alone: what one process gets out of each, two of each, and both at once; and what that bounds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from .alone import loaded, rows_per_s, warmed
from .children import Child, children, together
from .options import Options
from .results import Results

NETWORKS = ("weighty_detector", "weighty_colour")
BATCHES = {"weighty_detector": (1, 4, 16), "weighty_colour": (1, 8, 32, 64)}  # the last is max_batch
OBJECTS = 5  # in a picture
LOADING_S = 60.0  # at most
Rates = dict[str, float]


def engines(options: Options, results: Results, repository: Path, *, brief: bool) -> Rates:
    """Rows/s at max_batch by network, one process each."""
    precision, seconds = repository.name, options.engine_seconds
    best: Rates = {}
    with ExitStack() as stack:
        pairs = {name: stack.enter_context(children(1 if brief else 2)) for name in NETWORKS}
        every = _every(pairs)

        def load() -> dict[str, Any]:
            jobs = [(loaded, {"folder": repository / name}) for name, _ in every]
            said = together([child for _, child in every], jobs, within_s=LOADING_S)
            return {"said": dict(zip((name for name, _ in every), said, strict=True))}

        if results.measure("engines loaded", 15, load, precision=precision) is None:
            return best
        for name, (first, *_) in pairs.items():
            for batch in BATCHES[name][:: len(BATCHES[name]) - 1] if brief else BATCHES[name]:
                found = results.measure(
                    "engine alone",
                    seconds + 2,
                    partial(_rates, {name: [first]}, repository, seconds, batch),
                    precision=precision,
                    network=name,
                    batch=batch,
                )
                if found and batch == BATCHES[name][-1]:
                    best[name] = found["rows_per_s"][0]
        if not brief and len(best) == len(NETWORKS):
            _at_once(options, results, repository, pairs, best)
    if len(best) == len(NETWORKS):
        results.add(
            "engine bound",
            precision=precision,
            objects=OBJECTS,
            pictures_per_s=bound_of(best),
            how="1 / (1 / detector + objects / classifier), rows/s at max_batch, both on one GPU by turns",
        )
    return best


def bound_of(rates: Mapping[str, float], objects: int = OBJECTS) -> float:
    """Pictures/s of one GPU that both networks share, each at its best."""
    detector, classifier = (rates[name] for name in NETWORKS)
    return 1 / (1 / detector + objects / classifier)


def _at_once(
    options: Options, results: Results, repository: Path, pairs: Mapping[str, list[Child]], alone: Rates
) -> None:
    """Two of one network, then one of each: processes that share a GPU take turns, or overlap copies and gaps."""
    cases = [("two engines at once", {name: pair}) for name, pair in pairs.items()]
    cases += [("both networks at once", {name: pair[:1] for name, pair in pairs.items()})]
    for what, some in cases:

        def measured(some: Mapping[str, list[Child]] = some) -> dict[str, Any]:
            found = _rates(some, repository, options.engine_seconds)
            names = [name for name, _ in _every(some)]
            shares = [rate / alone[name] for name, rate in zip(names, found["rows_per_s"], strict=True)]
            return found | {"sum_of_shares": sum(shares)}

        parameters = {"precision": repository.name, "networks": list(some), "batch": "max_batch"}
        results.measure(what, options.engine_seconds + 2, measured, **parameters)


def _rates(some: Mapping[str, list[Child]], repository: Path, seconds: float, batch: int = 0) -> dict[str, Any]:
    """Of each process, all at the same time; at max_batch where no batch is given."""
    asked = [
        (child, {"folder": repository / name, "batch": batch or BATCHES[name][-1]}) for name, child in _every(some)
    ]
    processes = [child for child, _ in asked]
    together(processes, [(warmed, given) for _, given in asked], within_s=LOADING_S)
    timing = {"seconds": seconds, "begin_s": time.monotonic() + 0.05}
    answers = together(processes, [(rows_per_s, given | timing) for _, given in asked], within_s=seconds + LOADING_S)
    rates, warnings = zip(*answers, strict=True)
    return {"rows_per_s": list(rates), "warnings": [each for some in warnings for each in some]}


def _every(some: Mapping[str, list[Child]]) -> list[tuple[str, Child]]:
    return [(name, child) for name, pair in some.items() for child in pair]
