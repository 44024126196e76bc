"""The nodes that carry a network's work, and in which precision the graph has them compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from .errors import EngineError
from .wires import Wires

OPERATORS = ("Conv", "ConvTranspose", "MatMul", "Gemm")
PRECISIONS: Mapping[int, str] = {
    TensorProto.FLOAT: "fp32", TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16",
}  # fmt: skip
PASSES = frozenset({"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True)
class Work:
    """`precisions` by node, `order` all nodes, both by the names that TensorRT calls them."""

    precisions: Mapping[str, str]
    order: Sequence[str] = ()


def work_of(wires: Wires) -> Work:
    """int8 is what takes its data from a DequantizeLinear. Products of constants are none."""
    nodes = [node for node in wires.nodes if node.op_type in OPERATORS and not _is_constant(wires, node)]
    found = {name_of(node): _precision(wires, node.input[0]) for node in nodes}
    return Work({name: kind for name, kind in found.items() if kind}, [name_of(node) for node in wires.nodes])


def name_of(node: onnx.NodeProto) -> str:
    """As TensorRT's parser names it, also where the file does not."""
    return node.name or f"node_of_{next(iter(node.output), '')}"


def check_precision(asked: str, graph: Mapping[str, int], found: Mapping[str, int], *, model: str = "a model") -> None:
    """`EngineError` where less than half of the share that the graph has in the asked precision was found in it.

    `graph` and `found` count what carries the work, e.g. {"fp16": 50, "fp32": 7}; layers may have been merged.
    """
    wanted, came = _share(asked, graph), _share(asked, found)
    if asked == "fp32" or came >= wanted / 2:
        return
    raise EngineError(
        f"expected {model} to compute in {asked} as its graph does, in {wanted:.0%} of the layers that carry its work; "
        f"TensorRT compiled {came:.0%} of them so ({_listed(found)}); this GPU or this version has nothing faster in "
        f"{asked}: set `precision: fp32` for it, or compile elsewhere"
    )


def _share(precision: str, counts: Mapping[str, int]) -> float:
    return counts.get(precision, 0) / max(1, sum(counts.values()))


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} in {precision}" for precision, count in counts.items()) or "none"


def _is_constant(wires: Wires, node: onnx.NodeProto) -> bool:
    return all(name in wires.constants for name in node.input)


def _precision(wires: Wires, tensor: str) -> str:
    source = wires.source(tensor, PASSES)
    if source is not None and source.op_type == "DequantizeLinear":
        return "int8"
    return PRECISIONS.get(wires.types.get(tensor, TensorProto.UNDEFINED), "")
