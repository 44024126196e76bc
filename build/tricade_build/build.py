"""`build`: a pipeline file to its models in a repository. Either all of them are as the file says, or none changed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .ends import same_count
from .errors import BuildError, FoldError, SpecError
from .evidence import Evidence
from .heads import HEADS
from .lock import locked
from .made import Made, Work
from .manifest import GRAPH
from .networks import Job, job_of
from .pictures import Pictures
from .placement import check_owners, place
from .render import Files, render
from .rules import class_problems, upright_label_problems
from .settle import settled
from .spec import Pipeline, in_fp32
from .spec_file import pipeline_from_file
from .targets import TARGETS, Target
from .unpublished import Unpublished
from .verified import is_reference, obstacle
from .verifier import Halting, Verifier
from .verify import Verification
from .weights import Report, Weights, unheard
from .wiring import wiring_of

Names = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Built:
    """What a build did; all names are models of the repository."""

    pipeline: str
    built: tuple[str, ...]
    kept: tuple[str, ...]  # networks whose weights were made from the same
    removed: tuple[str, ...]
    verified: Mapping[str, Verification]  # by model and file, e.g. text_detector/model.plan
    unverified: Mapping[str, str]  # the same, and why not


def build(
    path: Path,
    *,
    repository: Path,
    target: str = "onnxruntime",
    precision: str | None = None,
    report: Report = unheard,
) -> Built:
    """Read, make, verify, render, place; raises `BuildError`. `precision` stands in the place of the file's."""
    if target not in TARGETS:
        raise BuildError(f"expected a target out of {', '.join(sorted(TARGETS))}; got {target}")
    pipeline = settled(path, pipeline_from_file(path, precision=precision))
    TARGETS[target].check(pipeline)
    with locked(repository, report):
        return _Build(path, pipeline, repository, TARGETS[target], report).run()


@dataclass(frozen=True)
class _Build:
    """One build of a locked repository."""

    path: Path
    pipeline: Pipeline
    repository: Path
    target: Target
    report: Report

    def run(self) -> Built:
        check_owners(self.repository, self.pipeline.name, [self.pipeline.name])
        halting, unpublished = Halting(self.report), Unpublished()
        with ExitStack() as stack:
            jobs = dict(map(self._job, ("detector", *self.pipeline.classifiers)))
            evidence = Evidence(self.pipeline, jobs, lambda: self._in_fp32(stack), halting)
            stack.callback(evidence.close)
            verifier = stack.enter_context(Verifier(halting))
            names: Names = {}
            for name, job in jobs.items():
                halting(f"building {job.model}")
                work = Work(self.repository / job.model, evidence, unpublished, halting)
                made = self._made(job, work, names)
                verifier.start(job, made, names.get(name, ()), work)
            if problems := list(_label_problems(self.pipeline, names)):
                raise SpecError(self.path, problems)
            weights = verifier.weights()
        models = {job.model: weights[name] for name, job in jobs.items()}
        removed = place(self.repository, self.pipeline.name, self._rendered(weights, names), models)
        unpublished.drop(record.key for each in weights.values() for record in each.records.values())
        return _built(self.pipeline.name, models, removed, evidence.verification)

    def _job(self, name: str) -> tuple[str, Job]:
        with self._about(name):
            return name, job_of(self.pipeline, name)

    def _made(self, job: Job, work: Work, names: Names) -> dict[str, Made]:
        """The network's files; its names join the others where there are classes, checked against what it knows."""
        with self._about(job.name):
            made = self.target.make(job, work)
            classes = made[GRAPH].record.shapes.classes
            if job.name == "detector":
                names[job.name] = same_count(job.labels, classes)
            elif (head := HEADS[self.pipeline.classifiers[job.name].head]).labelled:
                names[job.name] = head.names(job.labels, classes)
            return made

    @contextmanager
    def _about(self, name: str) -> Iterator[None]:
        """What is wrong with a network names it."""
        try:
            yield
        except FoldError as error:
            where = name if name == "detector" else f"classifiers.{name}"
            raise FoldError(f"{self.path}: {where}: {error}") from error

    def _rendered(self, weights: Mapping[str, Weights], names: Names) -> Files:
        wiring = wiring_of(self.pipeline, {name: made.shapes for name, made in weights.items()}, names)
        origin = f"{self.path.resolve().parent.name}/{self.path.name}"
        return render(wiring, origin=origin, names=names)

    def _in_fp32(self, stack: ExitStack) -> Path:
        """The same pipeline in fp32 for ONNX Runtime, in a folder that lives as long as the stack."""
        repository = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tricade-")))
        with locked(repository, self.report):
            _Build(self.path, in_fp32(self.pipeline), repository, TARGETS["onnxruntime"], self.report).run()
        return repository


def _built(pipeline: str, models: Mapping[str, Weights], removed: Sequence[str], pictures: Pictures | None) -> Built:
    records = {
        f"{model}/{file}": record
        for model, weights in models.items()
        for file, record in weights.records.items()
        if not is_reference(record)
    }
    return Built(
        pipeline=pipeline,
        built=tuple(model for model, weights in models.items() if weights.built),
        kept=tuple(model for model, weights in models.items() if not weights.built),
        removed=tuple(removed),
        verified={name: record.verification.found for name, record in records.items() if record.verification},
        unverified={
            name: obstacle(record, pictures) for name, record in records.items() if record.verification is None
        },
    )


def _label_problems(pipeline: Pipeline, names: Names) -> Iterator[str]:
    """What can only be seen once labels have been read out of their files."""
    for name, classifier in pipeline.classifiers.items():
        yield from class_problems(classifier, names["detector"], f"classifiers.{name}")
        if classifier.upright:
            yield from upright_label_problems(names[classifier.upright], classifier.upright, f"classifiers.{name}")
