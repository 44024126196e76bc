"""`model.plan`: the graph compiled, unless the plan that lies there was made from and for the same."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

from tricade.gpu import Gpu

from .code import digest_of
from .engine import Compiled, Range, Recipe
from .engine_process import Kit, compiled_from
from .engine_timings import Timings, timings_for
from .graph_file import graph_file
from .made import Made, Work
from .manifest import GRAPH, PLAN, Engine, Record, sha256_of
from .networks import Job
from .shapes import Shapes

SOURCES = ("engine", "engine_found", "engine_layers", "engine_typed", "engine_work", "stable_softmax", "wires")


@dataclass(frozen=True)
class Place:
    """Where a plan is compiled for: a GPU that is here, or capabilities ahead of time."""

    kit: Kit
    gpu: Gpu | None
    ahead: tuple[str, ...] = ()

    @property
    def capabilities(self) -> tuple[str, ...]:
        return self.ahead if self.gpu is None else (self.gpu.capability,)

    @property
    def timings(self) -> Timings:
        """TensorRT for RTX measures nothing while it compiles."""
        return Timings() if self.gpu is None else timings_for(gpu=self.gpu.name, version=self.kit.version)


def graph_and_plan(job: Job, work: Work, place: Callable[[Job], Place]) -> dict[str, Made]:
    """The graph and its plan; raises `BuildError`."""
    where = place(job)
    for name, shapes in ranges_of(job).items():
        shapes.check(name)
    graph = graph_file(job, work)
    recipe = recipe_of(job, where, graph.record.shapes)
    key = _key(graph.record, recipe, where)
    return {GRAPH: graph, PLAN: work.found(PLAN, key) or _compiled(work, graph, recipe, where, key)}


def _compiled(work: Work, graph: Made, recipe: Recipe, where: Place, key: str) -> Made:
    began_s = time.monotonic()
    compiled = compiled_from(graph.read(), recipe, where.kit, timings=where.timings, report=work.report)
    record = replace(
        graph.record,
        key=key,
        sha256=sha256_of(compiled.plan),
        engine=_engine(graph.record, recipe, where, compiled, build_s=time.monotonic() - began_s),
        verification=None,
    )
    made = Made(record, compiled.plan)
    work.keep(made)
    return made


def ranges_of(job: Job) -> dict[str, Range]:
    """Batches from 1 to `max_batch`, likeliest `opt_batch`; widths from the first, which is the likeliest too."""
    height, width = job.front.size
    widths = job.front.widths or (width,)
    shapes = Range(
        smallest=(1, height, widths[0], 3),
        likeliest=(job.opt_batch, height, widths[0], 3),
        largest=(job.max_batch, height, widths[-1], 3),
    )
    return {job.front.name: shapes}


def recipe_of(job: Job, place: Place, shapes: Shapes) -> Recipe:
    return Recipe(
        model=job.model,
        inputs=(shapes.input,),
        outputs=shapes.outputs,
        max_batch=job.max_batch,
        profile=ranges_of(job),
        precision=job.precision,
        capabilities=place.ahead if place.gpu is None else (),
        optimization_level=job.builder.optimization_level,
        workspace_bytes=job.builder.workspace_bytes,
    )


def graph_alone(job: Job, work: Work) -> dict[str, Made]:
    """A plan of an earlier target must not be served beside another graph."""
    return {GRAPH: graph_file(job, work)}


@cache
def package_of(name: str) -> Any:
    """An installed package that compiles, None where there is none. What it needs may be missing too."""
    try:
        package = import_module(name)
    except (ImportError, OSError):
        return None
    return package if hasattr(package, "Builder") else None  # a folder of that name is a package too


def _key(graph: Record, recipe: Recipe, place: Place) -> str:
    """Known without compiling: equal keys mean plans that serve alike."""
    parts = {
        "graph": graph.key,
        "recipe": asdict(recipe),
        "kit": [place.kit.target, place.kit.version],
        "gpu": asdict(place.gpu) if place.gpu else None,
        "code": digest_of(*SOURCES),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _engine(graph: Record, recipe: Recipe, place: Place, compiled: Compiled, *, build_s: float) -> Engine:
    return Engine(
        target=place.kit.target,
        version=place.kit.version,
        capabilities=place.capabilities,
        gpu=place.gpu.name if place.gpu else "",
        onnx_sha256=graph.sha256,
        precisions=compiled.precisions,
        profile={name: (r.smallest, r.likeliest, r.largest) for name, r in recipe.profile.items()},
        flags=compiled.flags,
        optimization_level=compiled.optimization_level,
        workspace_bytes=recipe.workspace_bytes,
        build_s=round(build_s, 2),
    )
