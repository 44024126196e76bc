"""A setting: how many instances each step of a pipeline has, how long its networks wait, how much its batches hold."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from tricade_build.render import ONNX_INSTANCES, PLAN_INSTANCES
from tricade_build.spec import Network, Pipeline


@dataclass(frozen=True)
class Step:
    """A step by its name in the pipeline file; None is what it does not have, or what is left alone."""

    name: str  # preprocess, detector, crop, label or a classifier's
    instances: int
    max_delay_us: int | None = None  # of networks
    max_batch: int | None = None  # of classifiers; the detector's bounds a request's images
    models: int = 1  # that have so many instances each: `crop` and every `turn`

    def __str__(self) -> str:
        """2, or 2, 500 µs, batch 8, or 2 (turn as many)."""
        delay = "" if self.max_delay_us is None else f", {self.max_delay_us} µs"
        batch = f", batch {self.max_batch}" if self.max_batch else ""
        return f"{self.instances}{delay}{batch}" + (" (turn as many)" if self.models > 1 else "")

    def since(self, start: Step) -> str:
        """Its name, and what differs."""
        count = f"{self.instances}" if self.instances != start.instances else ""
        delay = f"{self.max_delay_us} µs" if self.max_delay_us != start.max_delay_us else ""
        batch = f"batch {self.max_batch}" if self.max_batch != start.max_batch else ""
        return f"{self.name} {', '.join(filter(None, (count, delay, batch)))}"


@dataclass(frozen=True)
class Setting:
    """Of all steps, in the order of the cascade."""

    steps: tuple[Step, ...]

    @property
    def processes(self) -> int:
        """Instances of all models; each is a process, but for networks that a native backend runs."""
        return sum(step.instances * step.models for step in self.steps)

    def __getitem__(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)

    def changed(self, name: str, **values: Any) -> Setting:
        """The same but for some values of one step."""
        return Setting(tuple(replace(step, **values) if step.name == name else step for step in self.steps))

    def has_at_most(self, other: Setting) -> bool:
        """Nowhere more instances than the other, and nothing else that differs."""
        return all(
            mine.instances <= theirs.instances and replace(mine, instances=theirs.instances) == theirs
            for mine, theirs in zip(self.steps, other.steps, strict=True)
        )

    def since(self, start: Setting) -> str:
        """What differs, e.g. crop 3; colour 500 µs, batch 16."""
        differing = [step.since(start[step.name]) for step in self.steps if step != start[step.name]]
        return "; ".join(differing) or "as the file has it"

    def __str__(self) -> str:
        return "; ".join(f"{step.name} {step}" for step in self.steps)


def setting_from(pipeline: Pipeline, *, plans: Collection[str]) -> Setting:
    """The pipeline file's own; `plans` are the networks that run as one, for those without `instances`."""

    def network(name: str, section: Network, **more: int) -> Step:
        default = PLAN_INSTANCES if name in plans else ONNX_INSTANCES
        own = section.max_delay_us
        delay = pipeline.batching.max_delay_us if own is None else own
        return Step(name, section.instances or default, max_delay_us=delay, **more)

    counts = pipeline.instances
    turns = sum(classifier.upright is not None for classifier in pipeline.classifiers.values())
    return Setting(
        (
            Step("preprocess", counts.preprocess),
            network("detector", pipeline.detector),
            Step("crop", counts.crop, models=1 + turns),
            *(network(name, each, max_batch=each.max_batch) for name, each in pipeline.classifiers.items()),
            Step("label", counts.label),
        )
    )
