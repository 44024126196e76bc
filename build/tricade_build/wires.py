"""Who makes and who reads each tensor of a graph, and of which type it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import onnx
from onnx import TensorProto

SHAPES = frozenset({"Shape", "Size"})  # they look at no element, whatever its type


@dataclass(frozen=True)
class Wires:
    """A graph's nodes in order, the element type of each tensor where that is known, and the constants."""

    nodes: Sequence[onnx.NodeProto]
    types: Mapping[str, int]
    constants: Mapping[str, onnx.TensorProto]
    outputs: Sequence[str]
    opset: int

    def maker(self, tensor: str) -> onnx.NodeProto | None:
        return self._makers.get(tensor)

    def source(self, tensor: str, through: Set[str] = frozenset()) -> onnx.NodeProto | None:
        """The node that made what is in `tensor`, looking through operators; None where none did."""
        node = self.maker(tensor)
        while node is not None and node.op_type in through and self.maker(node.input[0]) is not None:
            node = self.maker(node.input[0])
        return node

    def origin(self, tensor: str, through: Set[str] = frozenset()) -> str | None:
        """The same node's name."""
        node = self.source(tensor, through)
        return None if node is None else node.name

    def readers(self, tensor: str) -> Sequence[str]:
        """Names of the nodes that read its elements, "" for whoever gets the graph's outputs; nodes need names."""
        return self._readers.get(tensor, ())

    @cached_property
    def _makers(self) -> Mapping[str, onnx.NodeProto]:
        return {out: node for node in self.nodes for out in node.output if out}

    @cached_property
    def _readers(self) -> Mapping[str, Sequence[str]]:
        found = defaultdict(list)
        for node in self.nodes:
            if node.op_type not in SHAPES:
                for name in (*node.input, *read_inside(node)):
                    found[name].append(node.name)
        for name in self.outputs:
            found[name].append("")
        return found


def wires_of(model: onnx.ModelProto) -> Wires:
    """Types are inferred, not believed; what ONNX cannot infer is missing."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*graph.input, *graph.output, *graph.value_info)
    types = {value.name: value.type.tensor_type.elem_type for value in values if value.type.HasField("tensor_type")}
    types |= {constant.name: constant.data_type for constant in graph.initializer}
    types |= {constant.values.name: constant.values.data_type for constant in graph.sparse_initializer}
    return Wires(
        nodes=list(model.graph.node),
        types={name: kind for name, kind in types.items() if kind != TensorProto.UNDEFINED},
        constants={constant.name: constant for constant in model.graph.initializer},
        outputs=[value.name for value in graph.output],
        opset=next(int(each.version) for each in model.opset_import if each.domain in ("", "ai.onnx")),
    )


def read_inside(node: onnx.NodeProto) -> Iterator[str]:
    """All that the branches and loops of a node name, among it what they take from outside."""
    for graph in inner_graphs(node):
        yield from (out.name for out in graph.output)
        for each in graph.node:
            yield from (*each.input, *read_inside(each))


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        yield from ([attribute.g] if attribute.HasField("g") else attribute.graphs)
