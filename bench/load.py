"""Load on anything that answers pictures: callers that wait for their answers, or arrivals that wait for nobody.

A contestant is a context manager with a name; entering it gives its call. In a closed loop each caller sends its next
picture when the last one was answered, so a slow server is asked less often. In an open loop pictures arrive when they
do, and a call counts from the moment it was meant to start: what a stall keeps waiting is not left out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Protocol

import numpy as np

from .crew import Crew

Call = Callable[[bytes], Any]  # an encoded picture to its answer; safe from any number of threads
Way = Callable[[Call], "Round"]  # one round of load on a call

# Open-loop calls under way at most; more arrivals than that wait, and their waiting counts.
IN_FLIGHT = 64
LATE_S = 0.005

_CREW = Crew()


class Contestant(AbstractContextManager[Call], Protocol):
    """Something that answers pictures, running while it is entered."""

    @property
    def name(self) -> str:
        """What tables call it."""


@dataclass(frozen=True)
class Round:
    """What one round of load met: latencies of the answered calls in order of their start, messages of the others.

    `rate` is answered calls a second; `late` counts open-loop calls that began later than they were meant to: too many
    were under way, or the machine had no time for them.
    """

    latency_ms: tuple[float, ...]
    errors: tuple[str, ...]
    rate: float
    late: int = 0


@dataclass(frozen=True)
class Timed:
    """One call on the clock of `time.perf_counter`: when it was meant to start, started and ended."""

    meant_s: float
    start_s: float
    end_s: float
    error: str = ""


def closed_loop(pictures: Sequence[bytes], *, callers: int, seconds: float) -> Way:
    """Each of `callers` threads calls again and again, for so long and at least twice; its first call is a run-up."""

    def way(call: Call) -> Round:
        order, stops = count(), []

        def caller() -> list[Timed]:
            timed = [timed_call(call, pictures[next(order) % len(pictures)])]
            stops.append(timed[0].end_s + seconds)  # the first to get here sets it for all
            while len(timed) < 2 or timed[-1].end_s < stops[0]:
                timed.append(timed_call(call, pictures[next(order) % len(pictures)]))
            return timed

        begun = [_CREW.submit(caller) for _ in range(callers)]
        return closed_round([each.result() for each in begun])

    return way


def open_loop(pictures: Sequence[bytes], *, rate: float, seconds: float, seed: int, in_flight: int = IN_FLIGHT) -> Way:
    """Pictures arrive at random, `rate` a second, whatever became of those before them."""

    def way(call: Call) -> Round:
        free = threading.Semaphore(in_flight)

        def one(picture: bytes, meant_s: float) -> Timed:
            timed = timed_call(call, picture, meant_s=meant_s)
            free.release()
            return timed

        begin, begun = time.perf_counter(), []
        for place, after_s in enumerate(arrivals(rate, seconds=seconds, seed=seed)):
            time.sleep(max(0.0, begin + after_s - time.perf_counter()))
            free.acquire()
            begun.append(_CREW.submit(partial(one, pictures[place % len(pictures)], begin + after_s)))
        return open_round([each.result() for each in begun], begin)

    return way


def arrivals(rate: float, *, seconds: float, seed: int) -> list[float]:
    """Moments of a Poisson process, in seconds from its beginning; at least one."""
    random = np.random.default_rng(seed)
    moments = [float(random.exponential(1 / rate))]
    while (moment := moments[-1] + float(random.exponential(1 / rate))) < seconds:
        moments.append(moment)
    return moments


def in_turns(calls: Mapping[str, Call], rounds: Sequence[Way]) -> dict[str, list[Round]]:
    """Each round with each call, in turns, so that a noisy machine is noisy to all; each round another one begins."""
    found: dict[str, list[Round]] = {name: [] for name in calls}
    names = list(calls)
    for turn, way in enumerate(rounds):
        begin = turn % len(names)
        for name in names[begin:] + names[:begin]:
            found[name].append(way(calls[name]))
    return found


def timed_call(call: Call, picture: bytes, *, meant_s: float | None = None) -> Timed:
    """One call; whatever it raises is its error."""
    start, error = time.perf_counter(), ""
    try:
        call(picture)
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    return Timed(start if meant_s is None else meant_s, start, time.perf_counter(), error)


def closed_round(callers: Sequence[Sequence[Timed]]) -> Round:
    """From each caller's calls, its run-up first. The rate is that of the time in which all were at work: from the
    end of the first run-up to the first last end. What was under way then is a latency too, or slow calls would be
    missing."""
    begin, end = min(calls[0].end_s for calls in callers), min(calls[-1].end_s for calls in callers)
    done = sum(begin < timed.end_s <= end and not timed.error for calls in callers for timed in calls)
    counted = [timed for calls in callers for timed in calls[1:]]
    failed_before = tuple(calls[0].error for calls in callers if calls[0].error)
    return _round(counted, rate=done / (end - begin), errors=failed_before)


def open_round(calls: Sequence[Timed], begin_s: float) -> Round:
    """From all calls of a round that began at `begin_s`."""
    end = max(timed.end_s for timed in calls)
    rate = sum(not timed.error for timed in calls) / (end - begin_s)
    return _round(calls, rate=rate, late=sum(timed.start_s - timed.meant_s > LATE_S for timed in calls))


def _round(calls: Sequence[Timed], *, rate: float, errors: tuple[str, ...] = (), late: int = 0) -> Round:
    calls = sorted(calls, key=lambda timed: timed.meant_s)
    answered = tuple(1e3 * (timed.end_s - timed.meant_s) for timed in calls if not timed.error)
    return Round(answered, errors + tuple(timed.error for timed in calls if timed.error), rate, late)
