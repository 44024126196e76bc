"""`verified`: what was made of a network is held to fp32 on real pictures, before it is published."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import onnx

from tricade.errors import BadSettings, StageError
from tricade.plan_network import PlanNetwork
from tricade.stage import ModelSpec

from .caches import cache_folder
from .caches import replace as replace_file
from .code import digest_of
from .errors import VerificationError
from .half_simulated import simulated
from .local import Run
from .made import Made, Work
from .manifest import GRAPH, MANIFEST, PLAN, Record, Verified, records_text
from .networks import Job
from .pictures import Pictures
from .trial import Trial, run_of, tried
from .verify import Verification, failure, page
from .weights import Weights, weights_from

DEVICE = 0  # the GPU that plans are compiled on
SOURCES = ("trial", "half_simulated", "verify/*", "verify/answers/*")  # that decide what is found


def verified(job: Job, made: Mapping[str, Made], names: Sequence[str], work: Work) -> Weights:
    """The network's files with what the comparison found, and a page for each file that was compared.

    Raises `VerificationError` where one is not as good as the pipeline file asks for. Without pictures, or where
    nothing here can run a file, it goes unverified.
    """
    files: dict[str, Made] = dict(made)
    contents: dict[str, bytes | Path] = {}
    pictures = work.evidence.verification
    for name, file in made.items():
        if pictures is None or is_reference(file.record) or obstacle(file.record, pictures):
            files[name] = replace(file, record=replace(file.record, verification=None))
            continue
        key = _key(file.record, job, work, pictures)
        present, report = file.record.verification, work.latest / page_of(name)
        if present and present.key == key and report.is_file():
            contents[report.name] = report
            continue
        found, contents[report.name] = _tried(job, name, file, names, work, pictures)
        files[name] = replace(file, record=replace(file.record, verification=Verified(key, found)))
    contents |= {name: file.data for name, file in files.items()}
    return weights_from(contents, {name: file.record for name, file in files.items()}, latest=work.latest)


def page_of(name: str) -> str:
    """The file beside another one that reports on it."""
    return f"{name}.html"


def is_reference(record: Record) -> bool:
    """A graph in fp32 is what all others are held to."""
    return record.precision == "fp32" and record.engine is None


def obstacle(record: Record, pictures: Pictures | None) -> str:
    """Why a file cannot be compared here; "" where it can."""
    if pictures is None:
        return "there are no pictures; name a folder of them under verification.images"
    if record.engine and not record.engine.gpu:
        return f"it is compiled for other GPUs ({', '.join(record.engine.capabilities)})"
    return ""


def _key(record: Record, job: Job, work: Work, pictures: Pictures) -> str:
    max_drop = work.evidence.pipeline.verification.max_drop
    parts = [record.key, work.evidence.key(job.name, pictures), max_drop, digest_of(*SOURCES)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _tried(
    job: Job, name: str, file: Made, names: Sequence[str], work: Work, pictures: Pictures
) -> tuple[Verification, bytes]:
    with _run(job, name, file, work) as run:
        found, plots = tried(Trial(job, run, names, name), work.evidence, pictures, work.report)
    report = page(f"{job.model}: {name}", found, plots, dict(_facts(name, file.record, pictures)))
    if not found.passed:
        kept = _kept(f"{job.model}-{page_of(name)}", report)
        raise VerificationError(f"{failure(job.model, job.precision, found)}\nthe whole report: {kept}")
    return found, report


@contextmanager
def _run(job: Job, name: str, file: Made, work: Work) -> Iterator[Run]:
    """The network as it will be served, its raw outputs too where it shows them."""
    if name == GRAPH:
        model = onnx.load_from_string(file.read())
        raw = work.evidence.folded(job.name).raw
        yield run_of(simulated(model) if job.precision == "fp16" else model, raw)
        return
    with tempfile.TemporaryDirectory(prefix="tricade-") as folder:
        version = Path(folder) / "1"
        version.mkdir()
        (version / PLAN).write_bytes(file.read())
        (version / MANIFEST).write_text(records_text({PLAN: file.record}))  # it says how the plan may be run
        try:
            network = PlanNetwork.load(_spec(job, file.record, Path(folder)))
        except (BadSettings, StageError) as error:
            raise VerificationError(
                f"expected {job.model}'s plan to run here, where it was compiled; {error}"
            ) from error
        try:
            yield network.run
        finally:
            network.close()


def _spec(job: Job, record: Record, folder: Path) -> ModelSpec:
    shapes = record.shapes
    return ModelSpec(
        job.model, folder, 1, {}, (shapes.input,), shapes.outputs, job.max_batch, 1, model_file=PLAN, device_id=DEVICE
    )


def _facts(name: str, record: Record, pictures: Pictures) -> Iterator[tuple[str, str]]:
    yield "file", name
    yield "source", record.source
    yield "precision", record.precision
    if name == GRAPH:
        where = "ONNX Runtime on a CPU"
        yield "run by", f"{where}, rounding as fp16 does" if record.precision == "fp16" else where
    if engine := record.engine:
        yield "run by", f"{engine.target} {engine.version} on {engine.gpu}"
        yield "layers that carry the work", ", ".join(f"{count} in {kind}" for kind, count in engine.precisions.items())
    yield "compared with", "the same network in fp32, by ONNX Runtime on a CPU"
    yield "pictures", f"{len(pictures.files)} of {pictures.files[0].parent.name}/ ({pictures.where})"


def _kept(name: str, report: bytes) -> Path:
    """Where the report is of something that is not published."""
    folder = cache_folder() / "reports"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="tricade-"))
    replace_file(folder / name, report)
    return folder / name
