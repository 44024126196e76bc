"""Networks of several builds compiled at the same time: what was made waits where those builds look for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tricade_build.build import build
from tricade_build.errors import BuildError
from tricade_build.evidence import Evidence
from tricade_build.made import Work
from tricade_build.networks import Job, job_of
from tricade_build.settle import settled
from tricade_build.spec_file import pipeline_from_file
from tricade_build.targets import TARGETS
from tricade_build.unpublished import Unpublished

AT_ONCE = 16  # a compiler is a process that keeps one core busy


@dataclass(frozen=True)
class Coming:
    """A build that is to come."""

    pipeline: Path
    repository: Path
    precision: str | None = None  # the file's


@dataclass(frozen=True)
class Compiled:
    """A network of one of them; `error` is empty where it was compiled, or was there already."""

    repository: Path
    network: str
    seconds: float
    error: str


def compile_ahead(
    builds: Sequence[Coming], *, target: str, reference: Path, report: Callable[[str], Callable[..., None]]
) -> Iterator[Compiled]:
    """Each as soon as it is done. `reference` is where the pipelines are built in fp32 for ONNX Runtime, if pictures
    have to be run; `report` makes a build's out of what it is about."""
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        making = []
        for coming in builds:
            spec = settled(coming.pipeline, pipeline_from_file(coming.pipeline, precision=coming.precision))
            jobs = {name: job_of(spec, name) for name in ("detector", *spec.classifiers)}
            heard = report(coming.repository.name)

            def fp32(path: Path = coming.pipeline, heard: Callable[..., None] = heard) -> Path:
                build(path, repository=reference, precision="fp32", report=heard)
                return reference

            evidence = Evidence(spec, jobs, fp32, heard)
            stack.callback(evidence.close)
            for job in jobs.values():
                about = f"{coming.repository.name} {job.model}"
                work = Work(coming.repository / job.model, evidence, Unpublished(), report(about))
                making.append(pool.submit(_compile, coming, job, work, target))
        for made in as_completed(making):
            yield made.result()


def _compile(coming: Coming, job: Job, work: Work, target: str) -> Compiled:
    began_s, error = time.monotonic(), ""
    try:
        TARGETS[target].make(job, work)
    except BuildError as failed:
        error = str(failed)
    return Compiled(coming.repository, job.model, time.monotonic() - began_s, error)
