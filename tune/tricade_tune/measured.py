"""What a trial says: from the calls of its round, and from what the models did meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .load import Round
from .search import Did, Measured
from .served import PARTS, Moment, Work
from .setting import Setting, Step


def measured_from(found: Round, before: Moment, after: Moment, *, pipeline: str, setting: Setting) -> Measured:
    """The percentile is over all calls of the round; the steps' figures are over what was answered."""
    since = {name: work.since(before.work[name]) for name, work in after.work.items()}
    answered = max(1, since[pipeline].requests)
    lasted_ms = 1e3 * (after.at_s - before.at_s)
    taken_s = sum(after.cpu_s.values()) - sum(before.cpu_s.values())
    return Measured(
        p99_ms=found.percentile_ms(99),
        missed=1 - len(found.latency_ms) / found.calls,
        calls=found.calls,
        steps={step.name: _did(_works(step, since, pipeline), step, answered, lasted_ms) for step in setting.steps},
        cpu_s_a_call=taken_s / answered,
        late=found.late / found.calls,
    )


def _works(step: Step, since: Mapping[str, Work], pipeline: str) -> Sequence[Work]:
    """Of the models that a step's instances are of; every `turn` goes with `crop`."""
    own = f"{pipeline}_{step.name}"
    turns = [work for name, work in since.items() if name.startswith(f"{pipeline}_turn_")]
    return [since[own], *(turns if step.name == "crop" else [])]


def _did(works: Sequence[Work], step: Step, answered: int, lasted_ms: float) -> Did:
    """Of several models the most of each."""
    queue, *compute = range(len(PARTS))
    return Did(
        requests_a_call=max(work.requests for work in works) / answered,
        rows_an_execution=max(work.rows / max(1, work.executions) for work in works),
        queue_ms=max(work.parts_ms[queue] / max(1, work.requests) for work in works),
        compute_ms=max(sum(work.parts_ms[part] for part in compute) / max(1, work.requests) for work in works),
        busy=max(work.executing_ms for work in works) / lasted_ms / step.instances,
    )
