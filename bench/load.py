"""Load on anything that answers pictures: callers that wait for their answers, or arrivals that wait for nobody.

A contestant is a context manager with a name; entering it gives its call. In a closed loop each caller sends its next
picture when the last one was answered, so a slow server is asked less often; the open loop is `tricade tune`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import Protocol

from tricade_tune.load import CREW, Call, Round, Timed, Way, arrivals, open_loop, open_round, round_of, timed_call

__all__ = [
    "Call", "Contestant", "Round", "Timed", "Way", "arrivals", "closed_loop", "closed_round", "in_turns", "open_loop",
    "open_round", "timed_call",
]  # fmt: skip


class Contestant(AbstractContextManager[Call], Protocol):
    """Something that answers pictures, running while it is entered."""

    @property
    def name(self) -> str:
        """What tables call it."""


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

        begun = [CREW.submit(caller) for _ in range(callers)]
        return closed_round([each.result() for each in begun])

    return way


def in_turns(calls: Mapping[str, Call], rounds: Sequence[Way]) -> dict[str, list[Round]]:
    """Each round with each call, in turns, so that a noisy machine is noisy to all; each round another one begins."""
    found: dict[str, list[Round]] = {name: [] for name in calls}
    names = list(calls)
    for turn, way in enumerate(rounds):
        begin = turn % len(names)
        for name in names[begin:] + names[:begin]:
            found[name].append(way(calls[name]))
    return found


def closed_round(callers: Sequence[Sequence[Timed]]) -> Round:
    """From each caller's calls, its run-up first. The rate is that of the time in which all were at work: from the
    end of the first run-up to the first last end; a call that was under way at either counts by its part in between,
    or whoever answers all callers at the same moment would be given calls that were done before. What was under way at
    the end is a latency too, or slow calls would be missing."""
    begin, end = min(calls[0].end_s for calls in callers), min(calls[-1].end_s for calls in callers)
    done = sum(_part(timed, begin, end) for calls in callers for timed in calls if not timed.error)
    counted = [timed for calls in callers for timed in calls[1:]]
    failed_before = tuple(calls[0].error for calls in callers if calls[0].error)
    return round_of(counted, rate=done / (end - begin), errors=failed_before)


def _part(timed: Timed, begin_s: float, end_s: float) -> float:
    """How much of a call lies between two moments, 0 to 1."""
    lasted = timed.end_s - timed.start_s
    within = min(timed.end_s, end_s) - max(timed.start_s, begin_s)
    return max(0.0, within) / lasted if lasted else float(begin_s < timed.end_s <= end_s)
