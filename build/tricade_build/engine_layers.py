"""The layers of an engine as TensorRT's inspector tells them: which carry the work, and what they compute in.

TensorRT 8.6 tells a type (CaskConvolution), the nodes that were merged (`a + b`) and formats (Channel major FP16
format where …); from 10 on types may be its compiler's own (gemm, kgen), and `Metadata` has the nodes. 11 tells
formats and types apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from .engine_work import Work

Layer = Mapping[str, Any]

PRECISIONS: Mapping[str, str] = {
    "FLOAT": "fp32", "FP32": "fp32", "HALF": "fp16", "FP16": "fp16", "BF16": "bf16", "BFLOAT16": "bf16",
    "INT8": "int8", "FP8": "fp8", "INT4": "int4", "FP4": "fp4",
}  # fmt: skip
_WORKS = re.compile(r"conv(?!ert)|gemm|mat(rix)?_?mul|fully_?connected", re.IGNORECASE)
_COPIES = re.compile(r"reformat|no_?op|constant|shuffle|copy", re.IGNORECASE)
_NODE = re.compile(r"\[ONNX Layer: (.*?)\](?=$|\x1e|\[ONNX Layer)")  # in Metadata
_MERGED = re.compile(r" (?:\+|\|\|) ")  # in a name
_FOREIGN = re.compile(r"ForeignNode\[(.+)\.\.\.(.+?)\]")  # the first and the last of many nodes


def precisions_of(layers: Sequence[Layer], work: Work) -> Mapping[str, int]:
    """How many of the nodes that carry the work are computed in each; of all layers where none of them is known.

    A layer that is made for such work counts as one node at least, merged ones as their nodes.
    """
    counts: Counter[str] = Counter()
    left = set(work.precisions)
    made_for_it = [layer for layer in layers if _WORKS.search(_type(layer))]
    others = [layer for layer in layers if not _WORKS.search(_type(layer)) and not _COPIES.search(_type(layer))]
    for layer in made_for_it:
        nodes = left & set(_nodes(layer))
        left -= nodes
        counts[_precision(layer)] += max(1, len(nodes))
    for layer in others:
        nodes = left & {*_nodes(layer), *_foreign(layer, work.order)}
        left -= nodes
        counts[_precision(layer)] += len(nodes)
    return counted(counts) or counted(Counter(_first(layer.get("Outputs")) for layer in layers))


def counted(types: Mapping[str, int]) -> Mapping[str, int]:
    """By precision; types of shapes, indices and truths are none."""
    found: Counter[str] = Counter()
    for name, count in types.items():
        if name in PRECISIONS and count:
            found[PRECISIONS[name]] += count
    return dict(sorted(found.items()))


def _type(layer: Layer) -> str:
    return f"{layer.get('LayerType', '')} {layer.get('ParameterType', '')}"


def _nodes(layer: Layer) -> Sequence[str]:
    """The nodes of the graph that a layer computes."""
    return _NODE.findall(str(layer.get("Metadata", ""))) or _MERGED.split(str(layer.get("Name", "")))


def _foreign(layer: Layer, order: Sequence[str]) -> Set[str]:
    """All between the first and the last node of a part that TensorRT's second compiler took over.

    An end that is no node of the graph, a constant say, is that of the graph.
    """
    ends = _FOREIGN.search(str(layer.get("Name", "")))
    if ends is None:
        return frozenset()
    first, last = ends.groups()
    start = order.index(first) if first in order else 0
    return frozenset(order[start : order.index(last) + 1 if last in order else len(order)])


def _precision(layer: Layer) -> str:
    """The type of its weights, else of what it takes, else of what it gives."""
    weights = layer.get("Weights")
    told = [{"Type": weights.get("Type")}] if isinstance(weights, Mapping) else []
    return _first(told) or _first(layer.get("Inputs")) or _first(layer.get("Outputs"))


def _first(tensors: Any) -> str:
    """The first type of numbers among those of the tensors."""
    return next((word for tensor in tensors or () for word in _words(tensor) if word in PRECISIONS), "")


def _words(tensor: Any) -> Iterator[str]:
    if isinstance(tensor, Mapping):
        told = " ".join(str(value) for key, value in tensor.items() if re.search("type|format", key, re.IGNORECASE))
        yield from re.findall(r"[A-Z]+\d*", told.upper())
