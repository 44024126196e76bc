"""ONNX files: readable, new enough and not too new, and what their configuration says."""

from __future__ import annotations

from collections.abc import Iterator

import onnxruntime

from ..runtime import newest
from . import register
from .finding import Finding, error
from .flow import agree
from .graph import Graph, Value
from .repository import Model, Repository, tensors_of


def check(repository: Repository) -> Iterator[Finding]:
    for model in repository.networks:
        graph = model.graph
        if graph is None:
            continue
        for problem, remedy in _problems(model, graph):
            yield error(model.name, f"{graph.file.name}: {problem}", remedy or model.rebuild)


def _problems(model: Model, graph: Graph) -> Iterator[tuple[str, str]]:
    """Each with what to do, "" for building again."""
    if graph.problem:
        yield f"expected an ONNX file; {graph.problem}", ""
        return
    yield from _age(graph)
    yield from _external(graph)
    for problem in _tensors(model, graph):
        yield problem, ""


def _age(graph: Graph) -> Iterator[tuple[str, str]]:
    limit = newest()
    remedy = "export the network with an older opset and build again, or install a newer ONNX Runtime"
    for name, came, most in (
        ("opset", graph.opset, limit.opset),
        ("IR version", graph.model.ir_version, limit.ir),
    ):
        if came > most:
            yield f"expected {name} {most} at most, for ONNX Runtime {onnxruntime.__version__}; got {came}", remedy


def _external(graph: Graph) -> Iterator[tuple[str, str]]:
    for name, size in graph.external_files.items():
        file = graph.file.parent / name
        if not file.is_file():
            yield f"expected its weights in {name} beside it; there is no such file", "copy both files together"
        elif file.stat().st_size < size:
            yield f"expected {name} to have {size} bytes at least; got {file.stat().st_size}", "copy the file again"


def _tensors(model: Model, graph: Graph) -> Iterator[str]:
    config = model.onnx_config
    batches, single = config.max_batch_size > 0, config.max_batch_size == 1
    for kind, entries, found in (("input", config.input, graph.inputs), ("output", config.output, graph.outputs)):
        wanted = tensors_of(entries)
        if missing := sorted(wanted.keys() - found.keys()):
            yield f"expected the {kind} {missing[0]}, as configured; got {', '.join(found) or 'none'}"
        if kind == "input" and (extra := sorted(found.keys() - wanted.keys())):
            yield f"expected the inputs {', '.join(wanted)}, as configured; got {extra[0]} too"
        for name in sorted(wanted.keys() & found.keys()):
            value, tensor = found[name], wanted[name]
            if value.dtype != tensor.dtype:
                yield f"expected {name} to be {tensor.dtype}, as configured; got {value.dtype}"
            dims = (-1, *tensor.dims) if batches else tensor.dims
            yield from _shape(value, dims, kind=kind, batches=batches, single=single)


def _shape(value: Value, dims: tuple[int, ...], *, kind: str, batches: bool, single: bool) -> Iterator[str]:
    if value.sides is None:
        return
    wanted = f"{value.name} to be {list(dims)}, as configured"
    if len(value.sides) != len(dims):
        batch = " with the batch" if batches else ""
        yield f"expected {wanted}{batch}, {len(dims)} dimensions; got {len(value.sides)}, {list(value.sides)}"
        return
    fixed = batches and value.sides[0] != -1 and not (single and value.sides[0] == 1)
    if fixed:
        yield f"expected a batch of any size in {value.name}; got {list(value.sides)}, a fixed one"
    # An input that is configured open must be open; an output may be configured wider than it is.
    first = 1 if batches else 0
    closed = kind == "input" and any(
        dim == -1 != side for dim, side in zip(dims[first:], value.sides[first:], strict=True)
    )
    if closed or not agree(value.sides[first:], dims[first:]):
        yield f"expected {wanted}; got {list(value.sides)}"


register(check)
