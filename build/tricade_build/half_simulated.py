"""`simulated`: what a graph in fp16 answers on a GPU, computed by ONNX Runtime on a CPU.

There it computes fp16 in fp32 and drops the casts between, so that 100 · 1000 · 0.001 gives 100, where a GPU gives
infinity. Here all numbers are fp32, and each tensor that the graph holds in fp16 is rounded to what fp16 holds of it,
by arithmetic that no optimizer simplifies. Within an operator sums are fp32, as on tensor cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import onnx

from .graph import PREFIX, Nodes
from .widen import FULL, HALF, halves_of, widen
from .wires import inner_graphs

SPLIT: Final = 2.0**13 + 1  # Veltkamp's, for 11 of fp32's 24 bits; ties go to even
STEP: Final = 0.75  # below it fp32's numbers are 2^-24 apart, as fp16's are next to 0
CAP: Final = 2.0**17  # large enough to become infinite, small enough for SPLIT
EDGE: Final = 2.0**112  # 65520 and more are rounded to 65536, which times this is infinite

# Operators that give nothing but what they take; constants are rounded already.
MOVES = frozenset({
    "Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Tile", "Concat", "Split",
    "Slice", "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "DepthToSpace", "SpaceToDepth",
    "Pad", "Where", "Max", "Min", "Clip", "Relu", "Neg", "Abs", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin",
    "TopK", "Dropout", "Constant", "ConstantOfShape", "If", "Loop", "Scan",
})  # fmt: skip


def simulated(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which inputs and outputs alone may be fp16; their names and types stay."""
    made = onnx.ModelProto()
    made.CopyFrom(onnx.shape_inference.infer_shapes(model, data_prop=True))
    graph, halves = made.graph, halves_of(made.graph)
    inputs = [value for value in graph.input if value.name in halves]
    outputs = [value for value in graph.output if value.name in halves]
    rounding = _Rounding(
        next(int(each.version) for each in made.opset_import if each.domain in ("", "ai.onnx")), halves
    )
    widen(graph)
    ends = {value.name: f"{PREFIX}half/{value.name}" for value in (*inputs, *outputs)}
    nodes = [
        *(rounding.cast(value.name, FULL, out=ends[value.name]) for value in inputs),
        *rounding.nodes_of(graph, ends),
        *(rounding.cast(ends[value.name], HALF, out=value.name) for value in outputs),
    ]
    for value in (*inputs, *outputs):
        value.type.tensor_type.elem_type = HALF
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(rounding.constants)
    return made


class _Rounding:
    """Adds rounding behind nodes, also of branches and loops; all share one set of constants."""

    def __init__(self, opset: int, halves: set[str]) -> None:
        self._nodes, self._halves = Nodes(opset, prefix=f"{PREFIX}half/"), halves
        values = {"split": SPLIT, "step": STEP, "cap": CAP, "edge": EDGE, "back": 1 / EDGE}
        self._numbers = {name: self._nodes.number(value) for name, value in values.items()}

    @property
    def constants(self) -> list[onnx.TensorProto]:
        return self._nodes.constants

    def cast(self, tensor: str, to: int, *, out: str) -> onnx.NodeProto:
        self._nodes.cast(tensor, to, out=out)
        return self._nodes.nodes.pop()

    def nodes_of(self, graph: onnx.GraphProto, names: Mapping[str, str]) -> list[onnx.NodeProto]:
        """`names` are other names that tensors get."""
        made: list[onnx.NodeProto] = []
        for old in graph.node:
            node = onnx.NodeProto()
            node.CopyFrom(old)
            node.input[:] = [names.get(name, name) for name in old.input]
            node.output[:] = [names.get(name, name) for name in old.output]
            for inner in inner_graphs(node):
                self._round_inside(inner, names)
            made.append(node)
            for place, name in enumerate(old.output):
                if name in self._halves and node.op_type not in MOVES:
                    node.output[place] = f"{PREFIX}exact/{name}"
                    made += self._rounded(node.output[place], names.get(name, name))
        return made

    def _round_inside(self, graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
        nodes = self.nodes_of(graph, names)
        del graph.node[:]
        graph.node.extend(nodes)
        for value in graph.output:
            value.name = names.get(value.name, value.name)

    def _rounded(self, exact: str, out: str) -> list[onnx.NodeProto]:
        """The nearest number of fp16; infinity stays that, and so does what is no number."""
        nodes, number = self._nodes, self._numbers
        size = nodes.add("Clip", nodes.add("Abs", exact), "", number["cap"])
        split = nodes.add("Max", nodes.add("Mul", size, number["split"]), number["step"])
        nearest = nodes.add("Sub", split, nodes.add("Sub", split, size))
        finite = nodes.add("Mul", nodes.add("Mul", nearest, number["edge"]), number["back"])
        nodes.add("Mul", finite, nodes.add("Sign", exact), out=out)
        made = list(nodes.nodes)
        nodes.nodes.clear()
        return made
