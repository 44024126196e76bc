"""`largest_of`: how large the numbers in an fp32 graph become on real inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tricade.stage import Arrays

from .graph import PREFIX, Nodes
from .runtime import Runtime
from .wires import Wires, wires_of

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)
# What they give is as large as what they take.
KEEPS = frozenset({"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"})


def largest_of(model: onnx.ModelProto, inputs: Iterable[Arrays]) -> dict[str, float]:
    """The largest |x| of each float tensor that a node makes, over all inputs; raises `FoldError`.

    All that leaves ONNX Runtime, which takes all cores, is the largest and the smallest number of each.
    """
    wires = wires_of(model)
    made = [(node, name) for node in wires.nodes for name in node.output if wires.types.get(name) in FLOATS]
    measured = [name for node, name in made if node.op_type not in KEEPS | {"Constant"}]
    runtime = Runtime(_measuring(model, measured, wires))
    found = dict.fromkeys(measured, 0.0)
    for arrays in inputs:
        peaks = _peaks(list(runtime.run(arrays).values()))
        found = {name: max(found[name], peak) for name, peak in zip(measured, peaks, strict=True)}
    for node, name in made:
        if node.op_type in KEEPS and node.input[0] in found:
            found[name] = found[node.input[0]]
    return found


def _measuring(model: onnx.ModelProto, names: Sequence[str], wires: Wires) -> onnx.ModelProto:
    """The model with its outputs replaced: the largest number of each tensor, then the smallest."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    nodes = Nodes(wires.opset, prefix=f"{PREFIX}largest/")
    del made.graph.output[:]
    for name in names:
        for op in ("ReduceMax", "ReduceMin"):  # not of Abs, whose result is as large as the tensor
            end = nodes.add(op, name, keepdims=0)
            made.graph.output.append(helper.make_tensor_value_info(end, wires.types[name], []))
    made.graph.node.extend(nodes.nodes)
    return made


def _peaks(ends: Sequence[Any]) -> list[float]:
    """Of pairs of largest and smallest; a tensor without elements has them in the wrong order, and a NaN is none."""
    pairs = np.array(ends, np.float64).reshape(-1, 2)
    pairs[np.isnan(pairs) | (pairs[:, :1] < pairs[:, 1:])] = 0
    return [float(peak) for peak in np.abs(pairs).max(1, initial=0)]
