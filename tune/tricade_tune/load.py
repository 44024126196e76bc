"""Open-loop load on anything that answers pictures: arrivals that wait for nobody.

Pictures arrive when they do, and a call counts from the moment it was meant to start: what a stall keeps waiting is not
left out.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .crew import Crew

Call = Callable[[bytes], Any]  # an encoded picture to its answer; safe from any number of threads
Way = Callable[[Call], "Round"]  # one round of load on a call

# Calls under way at most; more arrivals than that wait, and their waiting counts.
IN_FLIGHT = 64
LATE_S = 0.005

CREW = Crew()  # of all loads in this process


@dataclass(frozen=True)
class Round:
    """What one round of load met: latencies of the answered calls in order of their start, messages of the others.

    `rate` is answered calls a second; `late` counts open-loop calls that began later than they were meant to: too many
    were under way, or the machine had no time for them. `unstarted` counts those that gave up waiting for their start.
    """

    latency_ms: tuple[float, ...]
    errors: tuple[str, ...]
    rate: float
    late: int = 0
    unstarted: int = 0

    @property
    def calls(self) -> int:
        """All that were meant to be."""
        return len(self.latency_ms) + len(self.errors) + self.unstarted

    def percentile_ms(self, percent: float) -> float:
        """The latency that so many percent of all calls kept to, nearest rank; a call without an answer kept to none,
        so it is infinite where more than the rest have none."""
        rank = max(1, math.ceil(percent / 100 * self.calls))
        return sorted(self.latency_ms)[rank - 1] if rank <= len(self.latency_ms) else math.inf


@dataclass(frozen=True)
class Timed:
    """One call on the clock of `time.perf_counter`: when it was meant to start, started and ended."""

    meant_s: float
    start_s: float
    end_s: float
    error: str = ""


def open_loop(
    pictures: Sequence[bytes],
    *,
    rate: float,
    seconds: float,
    seed: int,
    in_flight: int = IN_FLIGHT,
    patience_s: float = math.inf,
) -> Way:
    """Pictures arrive at random, `rate` a second, whatever became of those before them; one that cannot start within
    `patience_s` after it was meant to never does."""

    def way(call: Call) -> Round:
        free = threading.Semaphore(in_flight)

        def one(picture: bytes, meant_s: float) -> Timed:
            timed = timed_call(call, picture, meant_s=meant_s)
            free.release()
            return timed

        begin, begun, unstarted = time.perf_counter(), [], 0
        for place, after_s in enumerate(arrivals(rate, seconds=seconds, seed=seed)):
            meant_s = begin + after_s
            time.sleep(max(0.0, meant_s - time.perf_counter()))
            left_s = max(0.0, meant_s + patience_s - time.perf_counter())
            if free.acquire(timeout=min(left_s, threading.TIMEOUT_MAX)):
                begun.append(CREW.submit(partial(one, pictures[place % len(pictures)], meant_s)))
            else:
                unstarted += 1
        return open_round([each.result() for each in begun], begin, unstarted=unstarted)

    return way


def arrivals(rate: float, *, seconds: float, seed: int) -> list[float]:
    """Moments of a Poisson process, in seconds from its beginning; at least one."""
    random = np.random.default_rng(seed)
    moments = [float(random.exponential(1 / rate))]
    while (moment := moments[-1] + float(random.exponential(1 / rate))) < seconds:
        moments.append(moment)
    return moments


def timed_call(call: Call, picture: bytes, *, meant_s: float | None = None) -> Timed:
    """One call; whatever it raises is its error."""
    start, error = time.perf_counter(), ""
    try:
        call(picture)
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    return Timed(start if meant_s is None else meant_s, start, time.perf_counter(), error)


def open_round(calls: Sequence[Timed], begin_s: float, *, unstarted: int = 0) -> Round:
    """From all calls of a round that began at `begin_s`."""
    end = max(timed.end_s for timed in calls)
    rate = sum(not timed.error for timed in calls) / (end - begin_s)
    late = sum(timed.start_s - timed.meant_s > LATE_S for timed in calls)
    return round_of(calls, rate=rate, late=late, unstarted=unstarted)


def round_of(
    calls: Sequence[Timed], *, rate: float, errors: tuple[str, ...] = (), late: int = 0, unstarted: int = 0
) -> Round:
    """Calls in the order in which they were meant to start; `errors` come before theirs."""
    calls = sorted(calls, key=lambda timed: timed.meant_s)
    answered = tuple(1e3 * (timed.end_s - timed.meant_s) for timed in calls if not timed.error)
    return Round(answered, errors + tuple(timed.error for timed in calls if timed.error), rate, late, unstarted)
