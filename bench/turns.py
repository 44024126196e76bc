"""Measuring ways of doing the same work in turns, so that a noisy machine is noisy to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

Way = Callable[[], object]


@dataclass(frozen=True)
class Measured:
    """One way of doing the work: latencies of its calls in milliseconds, and calls a second of each round."""

    latency_ms: tuple[float, ...]
    rates: tuple[float, ...]

    def percentile(self, share: float) -> float:
        """Latency in milliseconds that `share` percent of the calls stay below."""
        return float(np.percentile(self.latency_ms, share))

    @property
    def rate(self) -> float:
        """Calls a second: the median of the rounds."""
        return float(np.median(self.rates))


def in_turns(ways: Mapping[str, Way], *, callers: int, rounds: int, calls: int) -> dict[str, Measured]:
    """In each round every way makes `calls` calls from each of `callers` threads; the first round warms up."""
    latencies: dict[str, list[float]] = {name: [] for name in ways}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            begin = time.perf_counter()
            found = _round(way, callers=callers, calls=calls)
            took = time.perf_counter() - begin
            if turn:
                latencies[name] += found
                rates[name].append(len(found) / took)
    return {name: Measured(tuple(latencies[name]), tuple(rates[name])) for name in ways}


def _round(way: Way, *, callers: int, calls: int) -> list[float]:
    def caller(_: int) -> list[float]:
        return [_timed_ms(way) for _ in range(calls)]

    if callers == 1:
        return caller(0)
    with ThreadPoolExecutor(callers) as pool:
        return [latency for latencies in pool.map(caller, range(callers)) for latency in latencies]


def _timed_ms(way: Way) -> float:
    begin = time.perf_counter()
    way()
    return (time.perf_counter() - begin) * 1e3
