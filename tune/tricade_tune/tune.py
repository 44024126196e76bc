"""`tune`: from a pipeline file, pictures and a target to the setting that meets it, or to why none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tricade.onnx_network import cores
from tricade_build.spec_file import pipeline_from_file

from .models import models_of
from .objects import Share, stream_of
from .pictures import pictures_in
from .search import Goal, Measured, Tried, chosen, search
from .setting import Setting, setting_from
from .trials import SEED, Load, trials_of
from .verdict import Missed, missed

Report = Callable[..., None]  # what is being done, and the share that is done where it is known


@dataclass(frozen=True)
class Asked:
    """What the command is given; no `shares` stand for the pictures as they are."""

    pipeline: Path
    images: Path
    p99_ms: float
    rate: float
    shares: tuple[Share, ...]
    repository: Path
    trials: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """All that was tried, `start` first; `choice` meets the goal, or `missed` says why nothing does."""

    pipeline: str
    start: Setting
    tried: Tried
    goal: Goal
    choice: Setting | None
    missed: Missed | None
    counts: Sequence[int]


def tune(asked: Asked, report: Report) -> Outcome:
    """Serve, count, search; raises `TuneError`, and what reading and serving raise. Nothing is written."""
    pipeline = pipeline_from_file(asked.pipeline)
    models = models_of(pipeline, path=asked.pipeline, repository=asked.repository)
    pictures = pictures_in(asked.images)
    start = setting_from(pipeline, plans=models.plans)
    with trials_of(pipeline.name, models, asked.repository) as trials:
        report("counting the objects in the pictures")
        counts = trials.counts(start, pictures)

        def stream(length: int) -> list[bytes]:
            return [pictures[place].encoded for place in stream_of(counts, asked.shares, length=length, seed=SEED)]

        def measure_at(setting: Setting, rate: float) -> Measured:
            report(f"trying at {rate:.4g} calls/s: {setting.since(start)}")
            return trials.measured(setting, Load(stream, rate, asked.seconds, asked.p99_ms))

        stream(1)  # a range without a picture is told before anything is measured
        most = {name: min(batch, max(counts)) for name, batch in models.most_batch.items()}
        goal = Goal(asked.p99_ms, asked.trials, most)
        tried = search(start, lambda setting: measure_at(setting, asked.rate), goal)
        choice = chosen(tried, goal)
        why = None if choice else missed(tried, goal, rate=asked.rate, measure_at=measure_at, cores=cores())
    return Outcome(pipeline.name, start, tried, goal, choice, why, counts)
