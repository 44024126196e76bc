"""Precisions: what a folded graph goes through before it is placed and compiled, by the name in the pipeline file.

The same graph is then served by ONNX Runtime and compiled by TensorRT, so both answer alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tricade.stage import Arrays

from .code import digest_of
from .evidence import Evidence
from .fold import Folded
from .half import half_from, largest_of
from .networks import Job
from .quantize import quantized_from
from .weights import Report

NOISE = 4  # made-up pictures of each width, where there are no real ones


class Convert(Protocol):
    """Makes a graph of this precision out of one in fp32."""

    def __call__(self, job: Job, folded: Folded, evidence: Evidence, report: Report) -> Folded: ...


@dataclass(frozen=True)
class Precision:
    """`depends` says what a graph depends on apart from the one in fp32; `sources` are the files that make it."""

    convert: Convert
    depends: Any  # (Job, Evidence) to what JSON holds
    sources: tuple[str, ...]


def graph_of(job: Job, evidence: Evidence, report: Report) -> Folded:
    """Folded, and in the precision that is asked for."""
    if job.precision == "fp32":
        return job.fold()
    return PRECISIONS[job.precision].convert(job, evidence.folded(job.name), evidence, report)


def precision_key(job: Job, evidence: Evidence) -> list[Any]:
    """Equal graphs in fp32 and equal keys make equal graphs."""
    if job.precision == "fp32":
        return ["fp32"]
    precision = PRECISIONS[job.precision]
    return [job.precision, list(job.keep_fp32), precision.depends(job, evidence), digest_of(*precision.sources)]


def _half(job: Job, folded: Folded, evidence: Evidence, report: Report) -> Folded:
    report(f"measuring how large the numbers in {job.model} get")
    pictures = evidence.verification
    inputs = _noise(job) if pictures is None else (s.inputs for s in evidence.samples(job.name, pictures))
    report(f"converting {job.model} to fp16")
    return half_from(folded, keep=job.keep_fp32, largest=largest_of(folded.model, inputs), widths=job.front.widths)


def _noise(job: Job) -> Iterator[Arrays]:
    """Pictures of nothing, for want of real ones: noise from dark to full contrast."""
    random = np.random.default_rng(0)
    for shape in job.front.shapes(NOISE if not job.front.single else 1):
        contrast = np.linspace(0, 1, shape[0]).reshape(-1, 1, 1, 1)
        yield {job.front.name: (random.random(shape) * 255 * contrast).astype(np.uint8)}


def _quantized(job: Job, folded: Folded, evidence: Evidence, report: Report) -> Folded:
    samples = evidence.samples(job.name, evidence.calibration, enough=True)

    def about(what: str, share: float | None = None, /) -> None:
        report(f"{job.model}: {what}", share)

    return quantized_from(folded, samples, method=evidence.method, keep=job.keep_fp32, report=about)


def _verification_pictures(job: Job, evidence: Evidence) -> Any:
    return evidence.key(job.name, evidence.verification) if evidence.verification else None


def _calibration(job: Job, evidence: Evidence) -> Any:
    return [evidence.method, evidence.key(job.name, evidence.calibration)]


PRECISIONS: Mapping[str, Precision] = {
    "fp16": Precision(
        _half, _verification_pictures, ("fuse", "half", "half_nodes", "half_rules", "kept", "largest", "widen", "wires")
    ),
    "int8": Precision(
        _quantized,
        _calibration,
        ("calibrate", "fuse", "histogram", "kept", "layers", "noise", "pairs", "quantize"),
    ),
}
