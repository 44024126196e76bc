"""Adding nodes to an ONNX graph, in the opset that the graph has."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

PREFIX = "tricade/"  # of every node and tensor that is added
MIN_OPSET = 11  # below it TopK, Clip and GatherElements are not what is written here
REDUCE_AXES_AS_INPUT = 18  # from this opset ReduceMax takes its axes as an input


class Nodes:
    """Collects nodes and constants; each method returns the name of the tensor it makes."""

    def __init__(self, opset: int, *, prefix: str = PREFIX) -> None:
        self.opset, self.prefix = opset, prefix
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._made = count()

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """A node of one output."""
        return self.add_many(op, *inputs, outs=(out,), **attributes)[0]

    def add_many(self, op: str, *inputs: str, outs: tuple[str, ...], **attributes: Any) -> tuple[str, ...]:
        """A node of several outputs; an empty name is made up."""
        name = f"{self.prefix}{next(self._made)}/{op}"
        names = tuple(out or f"{name}:{index}" for index, out in enumerate(outs))
        self.nodes.append(helper.make_node(op, inputs, names, name=name, **attributes))
        return names

    def constant(self, value: NDArray[Any]) -> str:
        name = f"{self.prefix}constant/{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def number(self, value: float) -> str:
        """FP32, no dimensions."""
        return self.constant(np.array(value, np.float32))

    def cast(self, tensor: str, to: int, *, out: str = "") -> str:
        return self.add("Cast", tensor, to=to, out=out)

    def fp32(self, tensor: str, dtype: int) -> str:
        return tensor if dtype == TensorProto.FLOAT else self.cast(tensor, TensorProto.FLOAT)

    def slice(self, tensor: str, *, axis: int, start: int, stop: int) -> str:
        return self.add("Slice", tensor, self.integers(start), self.integers(stop), self.integers(axis))

    def reduce_max(self, tensor: str, *, axis: int, out: str = "") -> str:
        """The axis goes."""
        return self._reduce("ReduceMax", tensor, axis=axis, keepdims=0, out=out)

    def keep_max(self, tensor: str, *, axis: int) -> str:
        """The axis becomes 1."""
        return self._reduce("ReduceMax", tensor, axis=axis, keepdims=1, out="")

    def reduce_min(self, tensor: str, *, axis: int) -> str:
        """The axis becomes 1."""
        return self._reduce("ReduceMin", tensor, axis=axis, keepdims=1, out="")

    def length(self, tensor: str, *, axis: int) -> str:
        """The Euclidean norm; the axis becomes 1."""
        return self._reduce("ReduceL2", tensor, axis=axis, keepdims=1, out="")

    def _reduce(self, op: str, tensor: str, *, axis: int, keepdims: int, out: str) -> str:
        if self.opset >= REDUCE_AXES_AS_INPUT:
            return self.add(op, tensor, self.integers(axis), keepdims=keepdims, out=out)
        return self.add(op, tensor, axes=[axis], keepdims=keepdims, out=out)

    def argmax(self, tensor: str, *, axis: int) -> str:
        """INT64; of equal values the first. The axis goes."""
        return self.add("ArgMax", tensor, axis=axis, keepdims=0)

    def unsqueeze(self, tensor: str, *, axis: int) -> str:
        if self.opset >= 13:
            return self.add("Unsqueeze", tensor, self.integers(axis))
        return self.add("Unsqueeze", tensor, axes=[axis])

    def batch_of(self, tensor: str) -> str:
        """INT64 [1]: how many rows a tensor has."""
        return self.slice(self.add("Shape", tensor), axis=0, start=0, stop=1)


def add_prefix(graph: onnx.GraphProto, prefix: str) -> None:
    """To the names of all tensors and nodes, also those within branches and loops.

    `onnx.compose.add_prefix` forgets constants that a branch takes from outside.
    """
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = prefix + value.name
    for sparse in graph.sparse_initializer:
        sparse.values.name = prefix + sparse.values.name
    for note in graph.quantization_annotation:
        note.tensor_name = prefix + note.tensor_name
    for node in graph.node:
        node.name = node.name and prefix + node.name
        node.input[:] = [name and prefix + name for name in node.input]
        node.output[:] = [name and prefix + name for name in node.output]
        for inner in _graphs_in(node):
            add_prefix(inner, prefix)


def _graphs_in(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [
        graph
        for attribute in node.attribute
        for graph in ([attribute.g] if attribute.HasField("g") else attribute.graphs)
    ]


def keep_live(graph: onnx.GraphProto) -> None:
    """Remove the nodes and constants that no output needs."""
    makers = {out: node for node in graph.node for out in node.output}
    needed: set[str] = set()
    queue = [value.name for value in graph.output]
    while queue:
        if (tensor := queue.pop()) not in needed:
            needed.add(tensor)
            queue += reads(makers[tensor]) if tensor in makers else []
    nodes = [node for node in graph.node if needed.intersection(node.output)]
    constants = [constant for constant in graph.initializer if constant.name in needed]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(constants)


def reads(node: onnx.NodeProto) -> list[str]:
    """What a node takes, also from within the branches and loops that it holds."""
    graphs = _graphs_in(node)
    returned = [out.name for graph in graphs for out in graph.output]
    return [*node.input, *returned, *(name for graph in graphs for each in graph.node for name in reads(each))]


def tail_of(graph: onnx.GraphProto, tensor: str) -> str:
    """The operator that makes `tensor`, looking through Identity and Cast; "" for an input."""
    makers = {out: node for node in graph.node for out in node.output}
    while (node := makers.get(tensor)) is not None:
        if node.op_type not in ("Identity", "Cast"):
            return str(node.op_type)
        tensor = node.input[0]
    return ""
