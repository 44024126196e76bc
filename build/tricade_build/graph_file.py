"""`model.onnx`: the folded graph in its precision."""

from __future__ import annotations

import hashlib
import json

from .made import Made, Work
from .manifest import GRAPH, Record, sha256_of
from .networks import Job
from .precision import graph_of, precision_key


def graph_file(job: Job, work: Work) -> Made:
    """Fold, unless the graph was made from the same before; raises `BuildError`."""
    key = hashlib.sha256(json.dumps([job.key, precision_key(job, work.evidence)]).encode()).hexdigest()
    if found := work.found(GRAPH, key):
        return found
    work.report(f"folding {job.model}")
    folded = graph_of(job, work.evidence, work.report)
    data = folded.model.SerializeToString()
    record = Record(
        key=key,
        source=job.source.path.name,
        source_sha256=job.source.sha256,
        sha256=sha256_of(data),
        shapes=folded.shapes,
        precision=job.precision,
    )
    made = Made(record, data)
    if job.precision != "fp32":
        work.keep(made)
    return made
