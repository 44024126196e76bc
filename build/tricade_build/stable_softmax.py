"""Softmax over logits of which the largest is taken off first, for compilers that leave that out.

TensorRT 8.6 fuses a small classifier's layers into one kernel that computes exp(x) / sum(exp(x)): seen on an H200, a
logit of 100 gave NaN where ONNX Runtime gives 1. What softmax answers does not change by it, since
exp(x - m) / sum(exp(x - m)) is the same for every m (Goodfellow et al., Deep Learning, 4.1).
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from .graph import PREFIX, Nodes
from .wires import Wires, wires_of

# What reads probabilities at the end of a graph, and what may lie between. Softmax within a network is left to the
# compiler, which knows attention by its pattern.
_ENDS = frozenset({"ArgMax", "ReduceMax", "TopK"})
_BETWEEN = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"})
_OVER_ONE_AXIS = 13  # before this opset softmax is over `axis` and all behind it, by default 1


def stabilized(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same with each last Softmax over x - max(x); a copy, or the model itself where there is none."""
    wires = wires_of(model)
    found = [place for place in _last_ones(wires) if wires.opset >= _OVER_ONE_AXIS or _over_last(model, place)]
    if not found:
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for number, place in reversed(list(enumerate(found))):
        node = changed.graph.node[place]
        nodes = Nodes(wires.opset, prefix=f"{PREFIX}stable/{number}/")
        logits = node.input[0]
        node.input[0] = nodes.add(
            "Sub", logits, nodes.keep_max(logits, axis=-1 if wires.opset < _OVER_ONE_AXIS else _axis(node, default=-1))
        )
        changed.graph.initializer.extend(nodes.constants)
        for each in reversed(nodes.nodes):
            changed.graph.node.insert(place, each)
    return changed


def _last_ones(wires: Wires) -> Iterator[int]:
    """Where the nodes stand whose answer nothing but a graph's end reads."""
    by_name = {node.name: node for node in wires.nodes}

    def ends(tensor: str) -> bool:
        readers = [by_name[name] for name in wires.readers(tensor) if name]
        return all(
            node.op_type in _ENDS or (node.op_type in _BETWEEN and node.input[0] == tensor and ends(node.output[0]))
            for node in readers
        )

    for place, node in enumerate(wires.nodes):
        if node.op_type == "Softmax" and ends(node.output[0]):
            yield place


def _over_last(model: onnx.ModelProto, place: int) -> bool:
    """Whether an old Softmax has no axes behind its own."""
    node = model.graph.node[place]
    known = onnx.shape_inference.infer_shapes(model).graph.value_info
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in known}
    return _axis(node, default=1) in (-1, ranks.get(node.input[0], 0) - 1)


def _axis(node: onnx.NodeProto, *, default: int) -> int:
    return next((int(each.i) for each in node.attribute if each.name == "axis"), default)
