"""The nodes of a graph again, some in fp16: each reads its tensors in its own precision."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .graph import PREFIX, keep_live
from .half_rules import half_inputs, half_outputs
from .widen import FULL, HALF
from .wires import SHAPES, Wires, inner_graphs, read_inside

PREFIXES: Mapping[int, str] = {FULL: f"{PREFIX}fp32/", HALF: f"{PREFIX}fp16/"}  # of a tensor's second version


class HalfNodes:
    """All nodes but those named in `full` go to fp16; tensors named in `fixed` are found under their names after it.

    A cast is made where it is first needed, for all who read the same. One that the graph had is made in the
    precision that is read, and not at all where that is what it casts from.
    """

    def __init__(self, wires: Wires, full: Collection[str], *, fixed: Collection[str]) -> None:
        self._wires, self._full, self._fixed = wires, full, fixed
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}  # in fp16, by their names in fp32
        self._casts: dict[str, onnx.NodeProto] = {}  # the graph's own, by what they make
        self._versions: dict[str, dict[int, str]] = {}  # a tensor's names in the new graph, by type
        self._names: set[str] = set()

    def replace(self, graph: onnx.GraphProto) -> None:
        """Put them in the place of the graph's nodes."""
        for node in self._wires.nodes:
            if node.op_type == "Cast" and _to(node) in PREFIXES:
                self._casts[node.output[0]] = node
            else:
                self._copy(node)
        for name in self._fixed:
            if name not in self._names:
                self._read(name, self._type(name))
        del graph.node[:], graph.value_info[:]
        graph.node.extend(self._nodes)
        graph.initializer.extend(self._constants.values())
        keep_live(graph)
        self._rename_constants(graph)

    def _copy(self, node: onnx.NodeProto) -> None:
        made = onnx.NodeProto()
        made.CopyFrom(node)
        halves = [] if node.name in self._full else half_inputs(self._wires, node)
        for place, name in enumerate(node.input):
            if node.op_type in SHAPES or node.op_type == "Cast":
                made.input[place] = self._any(name)
            else:
                made.input[place] = self._read(name, HALF if place in halves else self._type(name))
        _rename_inside(made, {name: self._read(name, self._type(name)) for name in read_inside(node)})
        self._nodes.append(made)
        given = half_outputs(self._wires, node) if halves else []
        for place, name in enumerate(node.output):
            made.output[place] = self._new(name, HALF if place in given else self._type(name))

    def _type(self, tensor: str) -> int:
        return self._wires.types.get(tensor, TensorProto.UNDEFINED)

    def _any(self, tensor: str) -> str:
        """In whichever precision it is there."""
        return next(iter(self._versions.get(tensor, {}).values()), "") or self._read(tensor, self._type(tensor))

    def _read(self, tensor: str, kind: int) -> str:
        """The tensor's name in this precision, after a cast if need be."""
        if kind not in PREFIXES:
            return tensor
        versions = self._versions.setdefault(tensor, {})
        if kind in versions:
            return versions[kind]
        if tensor in self._casts:
            return self._cast_again(self._casts[tensor], kind)
        if not versions:  # an input or a constant
            versions[self._type(tensor)] = tensor
            self._names.add(tensor)
        if kind in versions:
            return tensor
        if tensor in self._wires.constants:
            return self._constant(tensor)
        (source,) = versions.values()
        name = self._new(tensor, kind)
        self._nodes.append(helper.make_node("Cast", [source], [name], name=PREFIXES[kind] + tensor, to=kind))
        return name

    def _cast_again(self, node: onnx.NodeProto, kind: int) -> str:
        source, tensor = node.input[0], node.output[0]
        there = self._versions.get(source, {}).get(kind)
        if there is not None and tensor not in self._fixed:
            self._versions[tensor][kind] = there
            return there
        made = helper.make_node("Cast", [self._any(source)], [self._new(tensor, kind)], to=kind)
        made.name = node.name if made.output[0] == tensor else made.output[0]
        self._nodes.append(made)
        return str(made.output[0])

    def _constant(self, tensor: str) -> str:
        value = numpy_helper.to_array(self._wires.constants[tensor])
        name = self._new(tensor, HALF)
        with np.errstate(over="ignore", under="ignore"):
            self._constants[tensor] = numpy_helper.from_array(value.astype(np.float16), name)
        return name

    def _new(self, tensor: str, kind: int) -> str:
        """A name for a tensor that is made in this precision; the graph's outputs keep theirs for their own type."""
        if kind not in PREFIXES or not tensor:
            return tensor
        own = tensor not in self._names and (tensor not in self._wires.outputs or kind == self._type(tensor))
        name = tensor if own else PREFIXES[kind] + tensor
        self._names.add(name)
        self._versions.setdefault(tensor, {})[kind] = name
        return name

    def _rename_constants(self, graph: onnx.GraphProto) -> None:
        """What nobody reads in fp32 any more keeps its name in fp16."""
        left = {constant.name for constant in graph.initializer}
        names = {made.name: name for name, made in self._constants.items() if name not in left}
        for constant in graph.initializer:
            constant.name = names.get(constant.name, constant.name)
        for node in graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]


def _to(node: onnx.NodeProto) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "to"), TensorProto.UNDEFINED)


def _rename_inside(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """In the branches and loops of a node, what they take from outside and what they answer with."""
    for graph in inner_graphs(node):
        for out in graph.output:
            out.name = names.get(out.name, out.name)
        for each in graph.node:
            each.input[:] = [names.get(name, name) for name in each.input]
            _rename_inside(each, names)
