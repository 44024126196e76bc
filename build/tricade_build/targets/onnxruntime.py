"""`onnxruntime`: the folded graph itself, `1/model.onnx`."""

from __future__ import annotations

from pathlib import Path

from ..errors import BuildError
from ..manifest import MANIFEST, Record, records_from, records_text, sha256_of
from ..networks import Job
from ..spec import Pipeline
from . import Target, Weights, register

FILE = "model.onnx"


def check(pipeline: Pipeline) -> None:
    """fp32 only."""
    networks = {"detector": pipeline.detector} | {f"classifiers.{n}": c for n, c in pipeline.classifiers.items()}
    for where, precision in [("precision", pipeline.precision)] + [
        (f"{where}.precision", network.precision or "fp32") for where, network in networks.items()
    ]:
        if precision != "fp32":
            raise BuildError(f"{where}: expected fp32, the only one for target onnxruntime; got {precision}")


def weights(job: Job, folder: Path) -> Weights:
    """Fold, unless what lies in `folder` was made from the same."""
    version = folder / "1"
    records = records_from(version / MANIFEST)
    present = records.get(FILE)
    if present and present.key == job.key and present.sha256 == sha256_of(version / FILE):
        return Weights(present.shapes, files={})
    folded = job.fold()
    data = folded.model.SerializeToString()
    record = Record(
        key=job.key,
        source=job.source.path.name,
        source_sha256=job.source.sha256,
        sha256=sha256_of(data),
        shapes=folded.shapes,
    )
    manifest = records_text(records | {FILE: record})
    return Weights(folded.shapes, files={f"1/{FILE}": data, f"1/{MANIFEST}": manifest.encode()})


register(Target("onnxruntime", check=check, weights=weights))
