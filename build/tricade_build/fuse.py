"""Batch norms and biases into the convolution that they follow: int8 is measured on what TensorRT computes.

Only the network's own nodes are touched, in place, on a copy that is ours. Operators stay standard ONNX.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from .graph import keep_live, reads
from .plain import NETWORK

CONVOLUTIONS = ("Conv", "ConvTranspose")
Values = NDArray[np.floating[Any]]


def fuse(model: onnx.ModelProto) -> dict[str, str]:
    """The names of the nodes that are gone, and of the convolution that each went into; all nodes are `named`."""
    graph = model.graph
    _lift_constants(graph)
    _pass_identities(graph)
    into = dict(_absorb_all(graph))
    keep_live(graph)
    return into


def own(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of the user's network."""
    return (node for node in graph.node if node.name.startswith(NETWORK))


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _lift_constants(graph: onnx.GraphProto) -> None:
    """Constants as initializers, as quantization wants them."""
    for node in [node for node in own(graph) if node.op_type == "Constant" and node.attribute[0].name == "value"]:
        constant = graph.initializer.add()
        constant.CopyFrom(node.attribute[0].t)
        constant.name = node.output[0]
        graph.node.remove(node)


def _pass_identities(graph: onnx.GraphProto) -> None:
    """The network reads past its identities; what is behind it still finds them."""
    behind = {node.output[0]: node.input[0] for node in own(graph) if node.op_type == "Identity"}
    for node in own(graph):
        for place, name in enumerate(node.input):
            while name in behind:
                name = behind[name]
            node.input[place] = name
    keep_live(graph)


@dataclass(frozen=True)
class _Affine:
    """y = scale · x + shift, each a number or one for each channel."""

    scale: Values
    shift: Values


def _absorb_all(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    constants = {constant.name: constant for constant in graph.initializer}
    uses = Counter(name for node in graph.node for name in reads(node))
    uses.update(output.name for output in graph.output)
    readers = {name: node for node in graph.node for name in node.input}
    for layer in [node for node in own(graph) if node.op_type in CONVOLUTIONS]:
        if not all(name in constants for name in layer.input[1:]):
            continue
        while uses[layer.output[0]] == 1 and layer.output[0] in readers:
            reader = readers[layer.output[0]]
            affine = _affine(reader, layer, constants)
            if affine is None:
                break
            _absorb(graph, layer, affine, constants)
            layer.output[0] = reader.output[0]
            graph.node.remove(reader)
            yield reader.name, layer.name


def _affine(node: onnx.NodeProto, layer: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> _Affine | None:
    """What `node` does to each channel of what `layer` answers; None where it does something else."""
    if not node.name.startswith(NETWORK):
        return None
    others = [name for name in node.input if name != layer.output[0]]
    if not all(name in constants for name in others):
        return None
    values = [numpy_helper.to_array(constants[name]).astype(np.float64) for name in others]
    if node.op_type == "BatchNormalization" and not attributes_of(node).get("training_mode", 0):
        gamma, beta, mean, variance = values
        scale = gamma / np.sqrt(variance + attributes_of(node).get("epsilon", 1e-5))
        return _Affine(scale, beta - mean * scale)
    if node.op_type in ("Add", "Mul") and len(values) == 1:
        value = _per_channel(values[0], layer, constants)
        if value is not None:
            return _Affine(np.ones(1), value) if node.op_type == "Add" else _Affine(value, np.zeros(1))
    return None


def _per_channel(value: Values, layer: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> Values | None:
    """One number, or one for each channel; None where it depends on the place in the picture too."""
    rank, channels = len(constants[layer.input[1]].dims), channels_of(layer, constants)
    if value.size == 1 and value.ndim <= rank:
        return value.reshape(1)
    shape = (1,) * (rank - value.ndim) + value.shape
    return value.reshape(channels) if shape == (1, channels) + (1,) * (rank - 2) else None


def channels_of(layer: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> int:
    """How many channels a convolution answers with."""
    dims = constants[layer.input[1]].dims
    return int(dims[0] if layer.op_type == "Conv" else dims[1] * attributes_of(layer).get("group", 1))


def _absorb(
    graph: onnx.GraphProto, layer: onnx.NodeProto, affine: _Affine, constants: dict[str, onnx.TensorProto]
) -> None:
    """New weights and bias, in the type of the old ones; the old ones may have other readers."""
    old = numpy_helper.to_array(constants[layer.input[1]])
    channels = channels_of(layer, constants)
    scale = np.broadcast_to(affine.scale, channels)
    bias = numpy_helper.to_array(constants[layer.input[2]]) if len(layer.input) == 3 else np.zeros(channels)
    if layer.op_type == "Conv":
        weight = old * scale.reshape(-1, *(1,) * (old.ndim - 1))
    else:
        groups = attributes_of(layer).get("group", 1)
        grouped = old.reshape(groups, old.shape[0] // groups, *old.shape[1:])
        weight = (grouped * scale.reshape(groups, 1, -1, *(1,) * (old.ndim - 2))).reshape(old.shape)
    made = {"weight": weight, "bias": bias * scale + affine.shift}
    for place, (what, value) in enumerate(made.items(), start=1):
        name = f"{layer.name}/folded {what}"
        constant = numpy_helper.from_array(value.astype(old.dtype), name)
        if name in constants:
            constants[name].CopyFrom(constant)
        else:
            graph.initializer.append(constant)
            constants[name] = graph.initializer[-1]
        layer.input[place:] = [name]
