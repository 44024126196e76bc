"""Adding nodes to an ONNX graph, in the opset that the graph has."""

from __future__ import annotations

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

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """A node of one output."""
        return self.add_many(op, *inputs, outs=(out,), **attributes)[0]

    def add_many(self, op: str, *inputs: str, outs: tuple[str, ...], **attributes: Any) -> tuple[str, ...]:
        """A node of several outputs; an empty name is made up."""
        name = f"{PREFIX}{len(self.nodes)}/{op}"
        names = tuple(out or f"{name}:{index}" for index, out in enumerate(outs))
        self.nodes.append(helper.make_node(op, inputs, names, name=name, **attributes))
        return names

    def constant(self, value: NDArray[Any]) -> str:
        name = f"{PREFIX}constant/{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def cast(self, tensor: str, to: int, *, out: str = "") -> str:
        return self.add("Cast", tensor, to=to, out=out)

    def fp32(self, tensor: str, dtype: int) -> str:
        return tensor if dtype == TensorProto.FLOAT else self.cast(tensor, TensorProto.FLOAT)

    def slice(self, tensor: str, *, axis: int, start: int, stop: int) -> str:
        return self.add("Slice", tensor, self.integers(start), self.integers(stop), self.integers(axis))

    def reduce_max(self, tensor: str, *, axis: int, out: str = "") -> str:
        """The axis goes."""
        if self.opset >= REDUCE_AXES_AS_INPUT:
            return self.add("ReduceMax", tensor, self.integers(axis), keepdims=0, out=out)
        return self.add("ReduceMax", tensor, axes=[axis], keepdims=0, out=out)

    def argmax(self, tensor: str, *, axis: int) -> str:
        """INT64; of equal values the first. The axis goes."""
        return self.add("ArgMax", tensor, axis=axis, keepdims=0)

    def unsqueeze(self, tensor: str, *, axis: int) -> str:
        if self.opset >= 13:
            return self.add("Unsqueeze", tensor, self.integers(axis))
        return self.add("Unsqueeze", tensor, axes=[axis])


def tail_of(graph: onnx.GraphProto, tensor: str) -> str:
    """The operator that makes `tensor`, looking through Identity and Cast; "" for an input."""
    makers = {out: node for node in graph.node for out in node.output}
    while (node := makers.get(tensor)) is not None:
        if node.op_type not in ("Identity", "Cast"):
            return str(node.op_type)
        tensor = node.input[0]
    return ""
