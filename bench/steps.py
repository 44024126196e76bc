"""Where the server's time goes: a pipeline's steps from Triton's statistics, and those that a call waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tricade_tune.served import PARTS


@dataclass(frozen=True)
class Spent:
    """Milliseconds of one model's inferences in all, by part, from when they came to when they were answered."""

    inferences: int
    parts_ms: tuple[float, ...]  # as in PARTS
    whole_ms: float

    def since(self, before: Spent) -> Spent:
        """What came on top."""
        parts = tuple(now - then for now, then in zip(self.parts_ms, before.parts_ms, strict=True))
        return Spent(self.inferences - before.inferences, parts, self.whole_ms - before.whole_ms)


@dataclass(frozen=True)
class Step:
    """A step of the ensemble: the models it waits for, and its milliseconds in one call by part; `calls` more
    batches were sent to its model by the step before, in whose `compute_infer` they are."""

    model: str
    needs: tuple[str, ...]
    parts_ms: tuple[float, ...]
    calls: float

    @property
    def ms(self) -> float:
        return sum(self.parts_ms)


def spent_from(statistics: Any) -> dict[str, Spent]:
    """By model, from the answer to Triton's statistics request."""
    return {
        model.name: Spent(
            model.inference_stats.success.count,
            tuple(getattr(model.inference_stats, part).ns / 1e6 for part in PARTS),
            model.inference_stats.success.ns / 1e6,
        )
        for model in statistics.model_stats
    }


def steps_of(ensemble: Any, spent: Mapping[str, Spent]) -> list[Step]:
    """The steps of an ensemble's configuration, each with what it took in one of the ensemble's calls.

    Statistics do not tell a step's own batch from those that the step before it sent to the same model. What the
    ensemble's own statistics say of computing is the sum over its steps alone, so where there is but one such model,
    its step computes what the others leave of that; its waiting is in no statistics, and counts as between the steps.
    Where there are several, each step is its model's average batch.
    """
    whole = spent[ensemble.name]
    makers = {
        outer: step.model_name for step in ensemble.ensemble_scheduling.step for outer in step.output_map.values()
    }
    plain = [
        Step(
            step.model_name,
            tuple(sorted({makers[outer] for outer in step.input_map.values() if outer in makers})),
            tuple(part / spent[step.model_name].inferences for part in spent[step.model_name].parts_ms),
            spent[step.model_name].inferences / whole.inferences - 1,
        )
        for step in ensemble.ensemble_scheduling.step
    ]
    shared = [step for step in plain if step.calls > 0]
    if len(shared) != 1:
        return plain
    others = [sum(parts) for parts in zip(*(step.parts_ms for step in plain if step not in shared), strict=True)]
    left = [max(0.0, part / whole.inferences - other) for part, other in zip(whole.parts_ms, others, strict=True)]
    own = (0.0, *left[1:])  # the ensemble's queue is not the sum of its steps'
    return [Step(step.model, step.needs, own, step.calls) if step in shared else step for step in plain]


def critical_path(steps: Sequence[Step]) -> list[Step]:
    """The chain of steps, each waiting for the one before, that takes longest; steps beside it cost a call nothing.

    `steps` are in an order in which each follows those it needs, as in the ensemble's configuration.
    """
    paths: dict[str, list[Step]] = {}
    for step in steps:
        before = max((paths[model] for model in step.needs), key=_ms, default=[])
        paths[step.model] = [*before, step]
    return max(paths.values(), key=_ms)


def _ms(path: Sequence[Step]) -> float:
    return sum(step.ms for step in path)
