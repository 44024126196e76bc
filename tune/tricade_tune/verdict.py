"""Why no setting meets the target: what was best, what bounds it, what the processors give, which rate it would do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .search import Goal, Measured, Tried, best
from .setting import Setting

HALVINGS = 4
BUSY = 0.7  # from this share of the time on a step is at its limit


@dataclass(frozen=True)
class Missed:
    """`rate` was asked for; `highest_rate` met the target with `setting`, 0 where none that was tried did."""

    setting: Setting
    measured: Measured
    goal: Goal
    tried: int
    rate: float
    highest_rate: float
    cores: int

    def __str__(self) -> str:
        lines = [
            f"expected p99 of at most {figure(self.goal.p99_ms)} ms at {self.rate:g} calls/s; none of {self.tried} "
            "settings that were tried keeps it; the pipeline file is as it was",
            f"  best: {_met(self.measured)} with {self.setting}",
            *self._bounds(),
            self._highest(),
        ]
        return "\n".join(lines)

    def _bounds(self) -> list[str]:
        if self.measured.failed:
            return [f"  it cannot be served: {self.measured.failed}"]
        cores = self.measured.cpu_s_a_call * self.rate
        enough = "" if cores < BUSY * self.cores else "; more processes cannot help: a machine with more cores would"
        return [
            f"  bound by: {bound(self.measured)}",
            f"  processors: the calls take {figure(cores)} cores, {figure(1e3 * self.measured.cpu_s_a_call)} ms each; "
            f"there are {self.cores}, which the caller needs too{enough}",
        ]

    def _highest(self) -> str:
        if self.highest_rate:
            return (
                f"  with that setting the target was met at {self.highest_rate:.4g} calls/s; ask for less, or more p99"
            )
        least = self.rate / 2**HALVINGS
        return f"  not even at {least:.4g} calls/s did that setting meet it; ask for more p99"


def missed(
    tried: Tried, goal: Goal, *, rate: float, measure_at: Callable[[Setting, float], Measured], cores: int
) -> Missed:
    """After a few more trials at lower rates."""
    setting = best(tried)
    highest = 0.0
    if not tried[setting].failed:
        highest = highest_rate(lambda lower: goal.met_by(measure_at(setting, lower)), rate)
    return Missed(setting, tried[setting], goal, len(tried), rate, highest, cores)


def highest_rate(meets: Callable[[float], bool], rate: float) -> float:
    """The highest that was seen to meet, below one that does not: halved until one does, then halfway between; 0 where
    none did."""
    low, high = 0.0, rate
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if meets(middle):
            low = middle
        else:
            high = middle
    return low


def bound(measured: Measured) -> str:
    """The busiest step where one is at its limit, else the one that calls spend most of their time in."""
    name, did = max(measured.steps.items(), key=lambda item: item[1].busy)
    if did.busy >= BUSY:
        return f"{name}, which executes {did.busy:.0%} of the time (all of its instances)"
    name, did = max(measured.steps.items(), key=lambda item: item[1].queue_ms + item[1].compute_ms)
    return (
        f"{name}, where a request waits {figure(did.queue_ms)} ms and computes {figure(did.compute_ms)} ms; "
        f"it executes {did.busy:.0%} of the time, so more instances are not what is missing"
    )


def figure(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _met(measured: Measured) -> str:
    missed = f"{measured.missed:.1%} of {measured.calls} calls not answered"
    if math.isinf(measured.p99_ms):
        return f"no p99, {missed},"
    return f"p99 {figure(measured.p99_ms)} ms" + (f", {missed}," if measured.missed else "")
