"""The search for the least setting that meets a target: from what was measured to what is tried next.

Without a setting that meets it, the best one so far has its longest queue shortened; with one, fewer instances are
tried. The same measurements lead the same way, and nothing is tried twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from .setting import Setting, Step

QUEUES_MS = 0.1  # what a request waits in Triton even where nothing is ahead of it
ALONE_ROWS = 1.5  # of a mean execution: below it batches are the exception
DELAY_US = 500
FULL = 0.95  # the busy share from which a step cannot do with less


@dataclass(frozen=True)
class Did:
    """What a step did in a trial: means over requests and executions, and the part of the time in which its instances
    executed, 0 to 1."""

    requests_a_call: float
    rows_an_execution: float
    queue_ms: float
    compute_ms: float
    busy: float


@dataclass(frozen=True)
class Measured:
    """One trial. `p99_ms` is infinite where more than 1 % of the calls were not answered; `missed` is their share.

    `fell_back` are networks whose figures are those of ONNX Runtime and not of the plan that they have, and why. A
    trial that `failed` has no figures, and tells nothing about smaller settings.
    """

    p99_ms: float
    missed: float
    calls: int
    steps: Mapping[str, Did]
    cpu_s_a_call: float  # of all the server's processes
    late: float = 0.0  # share of calls that the caller began late
    failed: str = ""  # why it could not be served, or what ended while it was
    fell_back: Mapping[str, str] = field(default_factory=dict)


def failure(why: str) -> Measured:
    """A trial without figures."""
    return Measured(math.inf, 1.0, 0, {}, 0.0, failed=why)


Measure = Callable[[Setting], Measured]
Tried = Mapping[Setting, Measured]  # in the order in which they were tried


@dataclass(frozen=True)
class Goal:
    """What is searched for, by so many trials; `most_batch` is what a classifier's max_batch may be raised to."""

    p99_ms: float
    trials: int
    most_batch: Mapping[str, int] = field(default_factory=dict)

    def met_by(self, measured: Measured) -> bool:
        return measured.p99_ms <= self.p99_ms


def search(start: Setting, measure: Measure, goal: Goal) -> dict[Setting, Measured]:
    """All that was tried, `start` first."""
    tried = {start: measure(start)}
    while len(tried) < goal.trials and (setting := next_setting(tried, goal)):
        tried[setting] = measure(setting)
    return tried


def chosen(tried: Tried, goal: Goal) -> Setting | None:
    """The one with the fewest processes that meets the goal, of equals the fastest."""
    met = [setting for setting, measured in tried.items() if goal.met_by(measured)]
    return min(met, key=lambda setting: (setting.processes, tried[setting].p99_ms), default=None)


def best(tried: Tried) -> Setting:
    """The fastest; where calls were missed, the one that missed the fewest and queued least; one without figures only
    where none has any."""
    return _by_merit(tried)[0]


def next_setting(tried: Tried, goal: Goal) -> Setting | None:
    """What to try next; None where there is nothing left."""
    met = chosen(tried, goal)
    if met is not None:
        return next((less for less in _lesser(tried, goal) if less.processes < met.processes), None)
    for setting in _by_merit(tried):
        for move in faster(setting, tried[setting], goal):
            if move not in tried and not _had_delay(setting, move, tried):
                return move
    return None


def faster(setting: Setting, measured: Measured, goal: Goal) -> Iterator[Setting]:
    """What may shorten its calls: batches that hold what was sent apart; then, the longest queue first, another delay
    where executions have one row although it queues, and one more instance."""
    steps = [(step, measured.steps[step.name]) for step in setting.steps if step.name in measured.steps]
    for step, did in steps:
        most = goal.most_batch.get(step.name, 0)
        if step.max_batch and step.max_batch < most and did.requests_a_call > 1:
            yield setting.changed(step.name, max_batch=min(2 * step.max_batch, most))
    for step, did in sorted(steps, key=lambda each: -each[1].queue_ms):
        if did.queue_ms < QUEUES_MS:
            return
        if step.max_delay_us is not None and did.rows_an_execution < ALONE_ROWS:
            # It waits for company that does not come, or does not wait for what might.
            yield setting.changed(step.name, max_delay_us=0 if step.max_delay_us else DELAY_US)
        if _waits_ms(step, did) >= QUEUES_MS:
            yield setting.changed(step.name, instances=step.instances + 1)


def smaller(setting: Setting, measured: Measured) -> Iterator[Setting]:
    """One instance less, of what never queues first; not of what would then be busy all the time."""
    steps = [(step, measured.steps[step.name]) for step in setting.steps if step.name in measured.steps]
    for step, did in sorted(steps, key=lambda each: _waits_ms(*each)):
        if step.instances > 1 and did.busy * step.instances < FULL * (step.instances - 1):
            yield setting.changed(step.name, instances=step.instances - 1)


def frontier(tried: Tried) -> list[Setting]:
    """Those that nothing with as few processes is faster than, by processes."""
    found: list[Setting] = []
    for setting in sorted(tried, key=lambda setting: (setting.processes, tried[setting].p99_ms)):
        if tried[setting].p99_ms < min((tried[other].p99_ms for other in found), default=float("inf")):
            found.append(setting)
    return found


def _lesser(tried: Tried, goal: Goal) -> Iterator[Setting]:
    """Of all that meet the goal, the least first; nothing that was tried, or is less than what was too little."""
    met = [setting for setting, measured in tried.items() if goal.met_by(measured)]
    little = [setting for setting in tried if setting not in met and not tried[setting].failed]
    for setting in sorted(met, key=lambda setting: (setting.processes, tried[setting].p99_ms)):
        for less in smaller(setting, tried[setting]):
            if less not in tried and not any(less.has_at_most(other) for other in little):
                yield less


def _had_delay(setting: Setting, move: Setting, tried: Tried) -> bool:
    """Whether the move gives a network a delay that was tried before: beside one setting is enough."""
    had = {(step.name, step.max_delay_us) for each in tried for step in each.steps}
    return any(
        (step.name, step.max_delay_us) in had
        for step in move.steps
        if step.max_delay_us != setting[step.name].max_delay_us
    )


def _by_merit(tried: Tried) -> list[Setting]:
    def merit(setting: Setting) -> tuple[bool, float, float, float, int]:
        measured = tried[setting]
        queued_ms = sum(did.queue_ms for did in measured.steps.values())
        return bool(measured.failed), measured.p99_ms, measured.missed, queued_ms, setting.processes

    return sorted(tried, key=merit)


def _waits_ms(step: Step, did: Did) -> float:
    """Of its queue what is not the delay that it was told to wait."""
    return max(0.0, did.queue_ms - (step.max_delay_us or 0) / 1e3)
