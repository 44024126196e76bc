"""`build`: a pipeline file to its models in a repository. Either all of them are as the file says, or none changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .ends import same_count
from .errors import BuildError, FoldError, SpecError
from .heads import HEADS
from .networks import Job, job_of
from .placement import check_owners, place
from .render import render
from .rules import class_problems, upright_label_problems
from .settle import settled
from .spec import Pipeline
from .spec_file import pipeline_from_file
from .targets import TARGETS, Target
from .weights import Report, Weights, unheard
from .wiring import wiring_of


@dataclass(frozen=True)
class Built:
    """What a build did; all names are models of the repository."""

    pipeline: str
    built: tuple[str, ...]
    kept: tuple[str, ...]  # networks whose weights were made from the same
    removed: tuple[str, ...]


def build(path: Path, *, repository: Path, target: str = "onnxruntime", report: Report = unheard) -> Built:
    """Read, fold, render, place; raises `BuildError`."""
    if target not in TARGETS:
        raise BuildError(f"expected a target out of {', '.join(sorted(TARGETS))}; got {target}")
    pipeline = settled(path, pipeline_from_file(path))
    TARGETS[target].check(pipeline)
    check_owners(repository, pipeline.name, [pipeline.name])
    jobs, weights, names = _networks(path, pipeline, TARGETS[target], repository, report)
    wiring = wiring_of(pipeline, {name: made.shapes for name, made in weights.items()}, names)
    origin = f"{path.resolve().parent.name}/{path.name}"
    files = render(wiring, origin=origin, max_delay_us=pipeline.batching.max_delay_us, names=names)
    for job in jobs:
        files |= {PurePosixPath(job.model, name): data for name, data in weights[job.name].files.items()}
    stale = [PurePosixPath(job.model, name) for job in jobs for name in weights[job.name].removed]
    removed = place(repository, pipeline.name, files, remove=stale)
    return Built(
        pipeline=pipeline.name,
        built=tuple(job.model for job in jobs if weights[job.name].built),
        kept=tuple(job.model for job in jobs if not weights[job.name].built),
        removed=tuple(removed),
    )


def _networks(
    path: Path, pipeline: Pipeline, target: Target, repository: Path, report: Report
) -> tuple[list[Job], dict[str, Weights], dict[str, tuple[str, ...]]]:
    """The networks' jobs, weights, and names where there are classes; labels are checked against what they know."""
    jobs: list[Job] = []
    weights: dict[str, Weights] = {}
    names: dict[str, tuple[str, ...]] = {}
    for name in ("detector", *pipeline.classifiers):
        report(f"building {pipeline.name}_{name}")
        try:
            job = job_of(pipeline, name)
            weights[name] = target.weights(job, repository / job.model, report)
            classes = weights[name].shapes.classes
            if name == "detector":
                names[name] = same_count(job.labels, classes)
            elif (head := HEADS[pipeline.classifiers[name].head]).labelled:
                names[name] = head.names(job.labels, classes)
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
