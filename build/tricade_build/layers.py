"""The layers of a network that int8 pays for, and those among them that int8 hurts most."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from .fuse import CONVOLUTIONS, attributes_of, channels_of, own
from .graph import reads

OPERATORS = (*CONVOLUTIONS, "MatMul", "Gemm")
MOVES = ("Concat", "Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze")
MIN_CHANNELS = 16  # what a tensor core multiplies at once


@dataclass(frozen=True)
class Layer:
    """A node that multiplies what it is given with constant weights."""

    node: str
    entry: str  # the tensor that it is given
    weight: str
    slight: bool  # int8 gains nothing there: few channels, whose rounding does not average out, or one pixel


def layers_of(model: onnx.ModelProto) -> list[Layer]:
    """In the order of the graph, all in fp32.

    One that answers with a single channel computes next to nothing: it counts as a step of decoding, like YOLO's
    mean over distances.
    """
    constants = {constant.name: constant for constant in model.graph.initializer}
    pooled = _pooled(model)
    return [
        Layer(
            node.name,
            entry=node.input[0],
            weight=node.input[1],
            slight=min(_channels(node, constants)) < MIN_CHANNELS or node.input[0] in pooled,
        )
        for node in own(model.graph)
        if node.op_type in OPERATORS
        and node.input[0] not in constants
        and node.input[1] in constants
        and constants[node.input[1]].data_type == TensorProto.FLOAT
        and _channels(node, constants)[1] > 1
        and _plain(node)
    ]


def _plain(node: onnx.NodeProto) -> bool:
    """Neither a transposed convolution in groups, whose scales have no axis, nor a Gemm whose bias has a factor."""
    attributes = attributes_of(node)
    if node.op_type == "ConvTranspose":
        return attributes.get("group", 1) == 1
    return attributes.get("beta", 1.0) == 1.0


def _pooled(model: onnx.ModelProto) -> frozenset[str]:
    """Tensors [M, C, 1, 1], like those that weigh channels."""
    known = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.value_info
    shapes = {value.name: [side.dim_value for side in value.type.tensor_type.shape.dim] for value in known}
    return frozenset(name for name, shape in shapes.items() if len(shape) == 4 and shape[2:] == [1, 1])


def _channels(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> tuple[int, int]:
    """What it is given and what it answers with; 0 for weights that are no matrix."""
    dims = constants[node.input[1]].dims
    if node.op_type in CONVOLUTIONS:
        groups = attributes_of(node).get("group", 1)
        return int(dims[0] if node.op_type == "ConvTranspose" else dims[1] * groups), channels_of(node, constants)
    if len(dims) != 2:
        return 0, 0
    given, answered = reversed(dims) if attributes_of(node).get("transB", 0) else dims
    return int(given), int(answered)


def resized(graph: onnx.GraphProto, layers: Sequence[Layer]) -> frozenset[str]:
    """The names of the layers that are given what a Resize made, be it joined or moved on the way.

    TensorRT quantizes in front of what only moves numbers, and 8.6 on an H200 knows no such Resize in int8: "Could not
    find any implementation for node".
    """
    tensors: set[str] = set()
    for node in graph.node:
        if node.op_type == "Resize" or (node.op_type in MOVES and not tensors.isdisjoint(node.input)):
            tensors.update(node.output)
    return frozenset(layer.node for layer in layers if layer.entry in tensors)


def ends_of(graph: onnx.GraphProto, layers: Sequence[Layer], raw: Collection[str]) -> frozenset[str]:
    """The names of the layers with none before them, and of those with none between them and an answer."""
    names = frozenset(layer.node for layer in layers)
    return _first(graph, names).union(*(_last(graph, names, tensor) for tensor in raw))


def _first(graph: onnx.GraphProto, layers: Collection[str]) -> frozenset[str]:
    behind: set[str] = set()  # tensors with a layer somewhere before them
    first = set()
    for node in graph.node:
        passed = not behind.isdisjoint(reads(node))
        if node.name in layers and not passed:
            first.add(node.name)
        if node.name in layers or passed:
            behind.update(node.output)
    return frozenset(first)


def _last(graph: onnx.GraphProto, layers: Collection[str], answer: str) -> frozenset[str]:
    passed = {answer: False}  # tensors that the answer needs, and whether a layer lies on a way to it
    last = set()
    for node in reversed(graph.node):
        ways = [passed[out] for out in node.output if out in passed]
        if not ways:
            continue
        if node.name in layers and not any(ways):
            last.add(node.name)
        for name in reads(node):
            passed[name] = passed.get(name, False) or any(ways) or node.name in layers
    return frozenset(last)
