"""Precisions: what a folded graph goes through before it is placed and compiled, by the name in the pipeline file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .errors import BuildError
from .fold import Folded
from .networks import Job
from .spec import Pipeline

# The same graph is then served by ONNX Runtime and compiled by TensorRT, so both answer alike.
PRECISIONS: Mapping[str, Callable[[Job, Folded], Folded]] = {
    "fp32": lambda _, folded: folded,
}


def graph_of(job: Job) -> Folded:
    """Folded, and in the precision that is asked for."""
    return PRECISIONS[job.precision](job, job.fold())


def check_precisions(pipeline: Pipeline, *, target: str, known: Mapping[str, object] = PRECISIONS) -> None:
    """`BuildError` for one that this target has no graph for."""
    networks = {"detector": pipeline.detector} | {f"classifiers.{n}": c for n, c in pipeline.classifiers.items()}
    asked = [("precision", pipeline.precision)]
    asked += [(f"{where}.precision", network.precision or pipeline.precision) for where, network in networks.items()]
    for where, precision in asked:
        if precision not in known:
            names = ", ".join(known) + (", the only one" if len(known) == 1 else ", those there are")
            raise BuildError(f"{where}: expected {names} for target {target}; got {precision}")
