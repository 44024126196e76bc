"""`1/model.onnx`: the folded graph in its precision, and the manifest's record of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from tricade.manifest import PLAN

from .manifest import MANIFEST, Record, records_from, records_text, sha256_of
from .networks import Job
from .precision import graph_of
from .weights import Report, Weights

GRAPH = "model.onnx"
VERSION = "1"


@dataclass(frozen=True)
class GraphFile:
    """The graph as it is served; `fresh` where it has to be placed."""

    data: bytes
    record: Record
    fresh: bool


def graph_file(job: Job, folder: Path, report: Report) -> GraphFile:
    """Fold, unless what lies in `folder` was made from the same."""
    file = folder / VERSION / GRAPH
    present = records_from(file.parent / MANIFEST).get(GRAPH)
    key = hashlib.sha256(json.dumps([job.key, job.precision]).encode()).hexdigest()
    if present and present.key == key and present.sha256 == sha256_of(file):
        return GraphFile(file.read_bytes(), present, fresh=False)
    report(f"folding {job.model}")
    folded = graph_of(job)
    data = folded.model.SerializeToString()
    record = Record(
        key=key,
        source=job.source.path.name,
        source_sha256=job.source.sha256,
        sha256=sha256_of(data),
        shapes=folded.shapes,
    )
    return GraphFile(data, record, fresh=True)


def weights_of(graph: GraphFile, folder: Path, *, plan: Record | None = None, new: bytes | None = None) -> Weights:
    """The graph, and the plan if there is one (`new` where it has to be placed); another plan goes."""
    records = {GRAPH: graph.record} | ({PLAN: plan} if plan else {})
    files = {f"{VERSION}/{GRAPH}": graph.data} if graph.fresh else {}
    if new is not None:
        files[f"{VERSION}/{PLAN}"] = new
    if records_from(folder / VERSION / MANIFEST) != records:
        files[f"{VERSION}/{MANIFEST}"] = records_text(records).encode()
    stale = plan is None and (folder / VERSION / PLAN).is_file()
    return Weights(graph.record.shapes, files, removed=(f"{VERSION}/{PLAN}",) if stale else ())
