"""Why no setting meets the target: what was best, what bounds it, what the processors give, which rate it would do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .search import Goal, Measured, Tried, best
from .setting import Setting

HALVINGS = 4
BUSY = 0.7  # from this share of the time on a step is at its limit


@dataclass(frozen=True)
class Missed:
    """`rate` was asked for; `highest_rate` met the target with `setting`, 0 where none that was tried did. `failed` is
    why one of those trials has no figures."""

    setting: Setting
    measured: Measured
    goal: Goal
    tried: int
    rate: float
    highest_rate: float
    cores: int
    failed: str = ""

    def __str__(self) -> str:
        if self.measured.failed:
            return (
                f"expected calls that can be measured; none of {self.tried} settings that were tried has figures; "
                f"the pipeline file is as it was\n  {self.setting} ({self.measured.failed})"
            )
        lines = [
            f"expected p99 of at most {figure(self.goal.p99_ms)} ms at {self.rate:g} calls/s; none of {self.tried} "
            "settings that were tried keeps it; the pipeline file is as it was",
            f"  best: {_met(self.measured)} with {self.setting}",
            *self._bounds(),
            self._highest(),
        ]
        return "\n".join(lines)

    def _bounds(self) -> list[str]:
        cores = self.measured.cpu_s_a_call * self.rate
        enough = "" if cores < BUSY * self.cores else "; more processes cannot help: a machine with more cores would"
        fell_back = ", ".join(self.measured.fell_back)
        return [
            *([f"  not of plans: {fell_back} ran on ONNX Runtime"] if fell_back else []),
            f"  bound by: {bound(self.measured)}",
            f"  processors: the calls take {figure(cores)} cores, {figure(1e3 * self.measured.cpu_s_a_call)} ms each; "
            f"there are {self.cores}, which the caller needs too{enough}",
        ]

    def _highest(self) -> str:
        if self.highest_rate:
            return (
                f"  with that setting the target was met at {self.highest_rate:.4g} calls/s; ask for less, or more p99"
            )
        if self.failed:
            return f"  which lower rate that setting would do is not known: a trial failed ({self.failed})"
        least = self.rate / 2**HALVINGS
        return f"  not even at {least:.4g} calls/s did that setting meet it; ask for more p99"


def missed(
    tried: Tried, goal: Goal, *, rate: float, measure_at: Callable[[Setting, float], Measured], cores: int
) -> Missed:
    """After a few more trials at lower rates."""
    setting = best(tried)
    lower: list[Measured] = []

    def meets(rate: float) -> bool:
        lower.append(measure_at(setting, rate))
        return goal.met_by(lower[-1])

    highest = 0.0 if tried[setting].failed else highest_rate(meets, rate)
    failed = next((measured.failed for measured in lower if measured.failed), "")
    return Missed(setting, tried[setting], goal, len(tried), rate, highest, cores, failed)


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
        f"it executes {did.busy:.0%} of the time, so more instances are not what is missing, but "
        "less work for it: a smaller input, another precision, a faster machine"
    )


def fallbacks(trials: Sequence[Measured]) -> list[str]:
    """A line for each network that did not run as its plan in all of the trials that have figures."""
    measured = [trial for trial in trials if not trial.failed]
    reasons = {name: why for trial in measured for name, why in trial.fell_back.items()}
    lines = []
    for name, why in reasons.items():
        count = sum(name in trial.fell_back for trial in measured)
        where = "" if count == len(measured) else f" in {count} of {len(measured)} trials"
        lines.append(f"{name} ran on ONNX Runtime{where}: the figures are not those of its plan: {why}")
    return lines


def figure(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _met(measured: Measured) -> str:
    missed = f"{measured.missed:.1%} of {measured.calls} calls not answered"
    if math.isinf(measured.p99_ms):
        return f"no p99, {missed},"
    return f"p99 {figure(measured.p99_ms)} ms" + (f", {missed}," if measured.missed else "")
