"""Which nodes of a network stay in fp32 while the rest goes to fp16: what fp16 cannot hold, and what costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from .plain import NETWORK
from .wires import Wires, read_inside

LARGEST = float(np.finfo(np.float16).max)  # 65504
LIMIT = LARGEST / 2  # pictures that nobody has measured may be twice as bright
LEAST = float(np.finfo(np.float16).tiny)  # below it fp16 loses digits

# What takes a network's time. A node that has none of them behind it decodes: fp32 costs nothing there.
WORK = frozenset({"Conv", "ConvTranspose", "DeformConv", "MatMul", "Gemm", "Einsum", "LSTM", "GRU", "RNN", "Attention"})

# Sums over many elements outgrow fp16 while their parts do not. LayerNormalization is none of them, as it sums in
# fp32 by ONNX's own definition (stash_type), nor is a pooling window, which is small.
SUMS = frozenset({
    "ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceLogSum",
    "ReduceLogSumExp", "CumSum", "GlobalAveragePool", "GlobalLpPool", "LpNormalization", "InstanceNormalization",
    "GroupNormalization", "BatchNormalization", "LRN", "MeanVarianceNormalization",
})  # fmt: skip
# From 11.1 on an exponential is beyond fp16, from 256 on a square; a root or a quotient of what is nearly 0 is lost.
# Sigmoid, Tanh, Erf and the like stay within 1 and fp16.
POWERS = frozenset({
    "Exp", "Log", "Pow", "Sqrt", "Reciprocal", "Softmax", "LogSoftmax", "Softplus", "Sinh", "Cosh", "Tan", "Sin",
    "Cos",
})  # fmt: skip
# Places, orders and whole numbers, and types that are given for themselves.
EXACT = frozenset({
    "TopK", "NonMaxSuppression", "RoiAlign", "Range", "Mod", "QuantizeLinear", "DequantizeLinear",
    "DynamicQuantizeLinear", "RandomNormalLike", "RandomUniformLike", "EyeLike", "Bernoulli", "Multinomial",
    "Cast",
})  # fmt: skip
PLACES = {"Resize": {1, 2}, "Upsample": {1}}  # inputs that are no pictures: regions, scales
# What a divisor may have gone through since it was made.
PASSES = frozenset({
    "Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Clip", "Slice", "Max", "Add",
})  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """`kept` are names of nodes, `largest` the largest |x| that was seen in each tensor of the fp32 graph."""

    kept: frozenset[str]
    largest: Mapping[str, float]


def full_nodes(wires: Wires, asked: Asked) -> frozenset[str]:
    """The names of the nodes that stay in fp32."""
    full = {"", *_tail(wires)}  # whoever gets the outputs gets them in the types they had
    full |= {node.name for node in wires.nodes if _alone(wires, node, asked)}
    while more := (_quotients(wires, full) | _between(wires, full)) - full:
        full |= more
    return frozenset(full)


def half_inputs(wires: Wires, node: onnx.NodeProto) -> list[int]:
    """The places of the fp32 tensors that the operator could take in fp16."""
    taken = _takes(node.op_type, node.domain, wires.opset)
    return [
        place
        for place, name in enumerate(node.input)
        if wires.types.get(name) == TensorProto.FLOAT
        and taken[min(place, len(taken) - 1)]
        and place not in PLACES.get(node.op_type, ())
    ]


def half_outputs(wires: Wires, node: onnx.NodeProto) -> list[int]:
    """The places of the fp32 tensors that it gives in fp16 then."""
    given = _gives(node.op_type, node.domain, wires.opset)
    return [
        place
        for place, name in enumerate(node.output)
        if wires.types.get(name) == TensorProto.FLOAT and given[min(place, len(given) - 1)]
    ]


def _alone(wires: Wires, node: onnx.NodeProto, asked: Asked) -> bool:
    """Whether a node stays in fp32 whatever is around it."""
    tensors = [name for name in (*node.input, *node.output) if name]
    return (
        not node.name.startswith(NETWORK)
        or node.name in asked.kept
        or node.op_type in SUMS | POWERS | EXACT
        or any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)
        or not all(name in wires.types for name in tensors)
        or not half_inputs(wires, node)
        or (node.op_type == "Mul" and node.input[0] == node.input[1])  # a square
        or any(_made_by(wires, name, "DequantizeLinear") for name in node.input)
        or any(name in wires.constants and not _fits(wires.constants[name]) for name in _numbers(wires, node))
        or any(not asked.largest.get(name, 0.0) <= LIMIT for name in tensors)
    )


def _made_by(wires: Wires, tensor: str, op: str) -> bool:
    maker = wires.maker(tensor)
    return maker is not None and maker.op_type == op


def _fits(constant: onnx.TensorProto) -> bool:
    """Whether fp16 holds it: infinity it does, a single number that keeps a quotient from 0 it must hold in full."""
    value = np.abs(numpy_helper.to_array(constant))
    finite = value[np.isfinite(value)]
    return not ((finite > LIMIT).any() or (value.size == 1 and (finite > 0).all() and (finite < LEAST).any()))


def _tail(wires: Wires) -> set[str]:
    """The nodes with no work behind them."""
    before: set[str] = set()  # tensors that some work needs
    tail = set()
    for node in reversed(wires.nodes):
        if node.op_type in WORK or not before.isdisjoint(node.output):
            before.update((*node.input, *read_inside(node)))
        else:
            tail.add(node.name)
    return tail


def _quotients(wires: Wires, full: Set[str]) -> set[str]:
    """The nodes that divide by what fp32 made, which may be next to 0."""
    divisors = {node.name: node.input[1] for node in wires.nodes if node.op_type == "Div"}
    return {name for name, divisor in divisors.items() if wires.origin(divisor, PASSES) in full}


def _between(wires: Wires, full: Set[str]) -> set[str]:
    """The nodes that take something from fp32 and give to fp32 only: among such, fp32 costs less than two casts."""
    light = [node for node in wires.nodes if node.name not in full and node.op_type not in WORK]
    leading = {node.name for node in light}
    while outside := {node.name for node in light if node.name in leading and not _leads(wires, node, full | leading)}:
        leading -= outside
    found: set[str] = set()
    for node in light:  # in order, so what it takes from its like is known
        if node.name in leading and any(wires.origin(name) in full | found for name in _numbers(wires, node)):
            found.add(node.name)
    return found


def _leads(wires: Wires, node: onnx.NodeProto, full: Set[str]) -> bool:
    given = [node.output[place] for place in half_outputs(wires, node)]
    return all(reader in full for name in given for reader in wires.readers(name))


def _numbers(wires: Wires, node: onnx.NodeProto) -> Iterator[str]:
    return (node.input[place] for place in half_inputs(wires, node))


@cache
def _takes(op: str, domain: str, opset: int) -> tuple[bool, ...]:
    schema = _schema(op, domain, opset)
    return tuple(formal.type_str in _floats(schema) for formal in schema.inputs) if schema else (False,)


@cache
def _gives(op: str, domain: str, opset: int) -> tuple[bool, ...]:
    """An output follows an input that shares its type."""
    schema = _schema(op, domain, opset)
    if schema is None:
        return (False,)
    taken = {formal.type_str for formal in schema.inputs}.intersection(_floats(schema))
    return tuple(formal.type_str in taken for formal in schema.outputs)


def _schema(op: str, domain: str, opset: int) -> onnx.defs.OpSchema | None:
    if domain not in ("", "ai.onnx") or not onnx.defs.has(op, domain=""):
        return None
    return onnx.defs.get_schema(op, opset, "")


def _floats(schema: onnx.defs.OpSchema) -> set[str]:
    """The type parameters that may be fp16."""
    return {each.type_param_str for each in schema.type_constraints if "tensor(float16)" in each.allowed_type_strs}
