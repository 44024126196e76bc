"""`build`: a pipeline file to its models in a repository. Either all of them are as the file says, or none changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import BuildError, FoldError, SpecError
from .heads import HEADS
from .networks import Job, job_of
from .placement import check_owners, place
from .render import render
from .rules import class_problems, upright_label_problems
from .spec import Pipeline
from .spec_file import pipeline_from_file
from .targets import TARGETS, Target, Weights
from .wiring import wiring_of

Report = Callable[[str], None]  # hears what is being worked on


@dataclass(frozen=True)
class Built:
    """What a build did; all names are models of the repository."""

    pipeline: str
    built: tuple[str, ...]
    kept: tuple[str, ...]  # networks whose weights were made from the same
    removed: tuple[str, ...]


def build(path: Path, *, repository: Path, target: str = "onnxruntime", report: Report = lambda _: None) -> Built:
    """Read, fold, render, place; raises `BuildError`."""
    if target not in TARGETS:
        raise BuildError(f"expected a target out of {', '.join(sorted(TARGETS))}; got {target}")
    pipeline = pipeline_from_file(path)
    TARGETS[target].check(pipeline)
    check_owners(repository, pipeline.name, [pipeline.name])
    jobs, weights, names = _networks(path, pipeline, TARGETS[target], repository, report)
    wiring = wiring_of(pipeline, {name: made.shapes for name, made in weights.items()}, names)
    origin = f"{path.resolve().parent.name}/{path.name}"
    files = render(wiring, origin=origin, max_delay_us=pipeline.batching.max_delay_us, names=names)
    for job in jobs:
        files |= {PurePosixPath(job.model, name): data for name, data in weights[job.name].files.items()}
    removed = place(repository, pipeline.name, files)
    return Built(
        pipeline=pipeline.name,
        built=tuple(job.model for job in jobs if weights[job.name].built),
        kept=tuple(job.model for job in jobs if not weights[job.name].built),
        removed=tuple(removed),
    )


def _networks(
    path: Path, pipeline: Pipeline, target: Target, repository: Path, report: Report
) -> tuple[list[Job], dict[str, Weights], dict[str, tuple[str, ...]]]:
    """The networks' jobs, weights, and names of classes; labels are checked against what the networks know."""
    jobs: list[Job] = []
    weights: dict[str, Weights] = {}
    names: dict[str, tuple[str, ...]] = {}
    for name in ("detector", *pipeline.classifiers):
        report(f"building {pipeline.name}_{name}")
        try:
            job = job_of(pipeline, name)
            weights[name] = target.weights(job, repository / job.model)
            classes = weights[name].shapes.classes
            names[name] = job.labels
            if name != "detector":
                names[name] = HEADS[pipeline.classifiers[name].head].names(job.labels, classes)
        except FoldError as error:
            where = name if name == "detector" else f"classifiers.{name}"
            raise FoldError(f"{path}: {where}: {error}") from error
        jobs.append(job)
    if problems := list(_label_problems(pipeline, names)):
        raise SpecError(path, problems)
    return jobs, weights, names


def _label_problems(pipeline: Pipeline, names: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """What can only be seen once labels have been read out of their files."""
    for name, classifier in pipeline.classifiers.items():
        yield from class_problems(classifier, names["detector"], f"classifiers.{name}")
        if classifier.upright:
            yield from upright_label_problems(names[classifier.upright], classifier.upright, f"classifiers.{name}")
