"""Types that bind TensorRT before 10, which else takes any precision that it is allowed for any layer.

Later versions build strongly typed networks: there a tensor has the type that the graph gives it, and nothing of this
is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import onnx
from onnx import TensorProto

from .engine_work import name_of
from .wires import Wires

FULL, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
NAMES: Mapping[int, str] = {FULL: "FLOAT", HALF: "HALF"}  # TensorRT's

COMPUTES = frozenset({
    "CONVOLUTION", "DECONVOLUTION", "FULLY_CONNECTED", "MATRIX_MULTIPLY", "EINSUM", "ACTIVATION", "POOLING", "LRN",
    "SCALE", "SOFTMAX", "ELEMENTWISE", "UNARY", "REDUCE", "TOPK", "PARAMETRIC_RELU", "RESIZE", "SELECT", "GRID_SAMPLE",
    "NORMALIZATION",
})  # fmt: skip
# They compute nothing; a type for what they give keeps fp32 through them. The rest, casts, shapes, quantization,
# loops, conditions and plugins, have types of their own.
MOVES = frozenset({
    "CONSTANT", "SHUFFLE", "CONCATENATION", "SLICE", "GATHER", "PADDING", "IDENTITY", "SCATTER", "SQUEEZE", "UNSQUEEZE",
})  # fmt: skip


def bind_types(trt: Any, config: Any, network: Any, wires: Wires) -> tuple[str, ...]:
    """Allow the precisions that the graph has, tie each layer to its own; returns the flags that were set."""
    half = HALF in wires.types.values()
    quantized = any(node.op_type == "QuantizeLinear" for node in wires.nodes)
    wanted = {"FP16": half, "INT8": quantized, "OBEY_PRECISION_CONSTRAINTS": half}
    flags = tuple(name for name, is_wanted in wanted.items() if is_wanted and hasattr(trt.BuilderFlag, name))
    for name in flags:
        config.set_flag(getattr(trt.BuilderFlag, name))
    if half:
        for layer, kind in _kinds(network, wires):
            _bind(layer, getattr(trt.DataType, NAMES[kind]), computes=layer.type.name in COMPUTES)
    return flags


def _kinds(network: Any, wires: Wires) -> Iterator[tuple[Any, int]]:
    """The layers to tie, and to what."""
    layers = [network.get_layer(place) for place in range(network.num_layers)]
    quantized = {name for layer in layers if "QUANTIZE" in layer.type.name for name in _tensors(layer)}
    for layer, owner in zip(layers, _owners(layers, wires), strict=True):
        if layer.type.name not in COMPUTES | MOVES or not quantized.isdisjoint(_tensors(layer)):
            continue
        kind = _kind_of_constant(layer) if layer.type.name == "CONSTANT" else _kind(owner, wires)
        # What moves fp16 may as well be left to TensorRT.
        if kind == FULL or (kind == HALF and layer.type.name in COMPUTES):
            yield layer, kind


def _owners(layers: list[Any], wires: Wires) -> list[onnx.NodeProto | None]:
    """The node that each layer was made for. What has no name of its own helps the next that has one."""
    names = {name_of(node): node for node in wires.nodes}
    found: list[onnx.NodeProto | None] = []
    for layer in reversed(layers):
        outputs = (layer.get_output(place).name for place in range(layer.num_outputs))
        made = next((wires.maker(name) for name in outputs if wires.maker(name)), None)
        known = re.search(r"\[ONNX Layer: (.*)\]$", getattr(layer, "metadata", None) or "")
        named = names.get(known.group(1) if known else layer.name)
        found.append(made or named or (found[-1] if found else None))
    return found[::-1]


def _kind(node: onnx.NodeProto | None, wires: Wires) -> int | None:
    """What a node gives in numbers, else what it takes: a comparison is made in that."""
    tensors = () if node is None else (*node.output, *node.input)
    return next((wires.types[name] for name in tensors if wires.types.get(name) in NAMES), None)


def _kind_of_constant(layer: Any) -> int | None:
    return next((kind for kind, name in NAMES.items() if name == layer.get_output(0).dtype.name), None)


def _bind(layer: Any, dtype: Any, *, computes: bool) -> None:
    if any(tensor.is_shape_tensor for tensor in (*_inputs(layer)[:1], *_outputs(layer)[:1])):
        return
    if computes and any(_is_number(tensor) for tensor in (*_inputs(layer), *_outputs(layer))):
        layer.precision = dtype
    for place, tensor in enumerate(_outputs(layer)):
        if _is_number(tensor) and not layer.output_type_is_set(place):
            layer.set_output_type(place, dtype)


def _is_number(tensor: Any) -> bool:
    return tensor.dtype.name in NAMES.values()


def _tensors(layer: Any) -> list[str]:
    return [tensor.name for tensor in (*_inputs(layer), *_outputs(layer))]


def _inputs(layer: Any) -> list[Any]:
    """Some are optional."""
    tensors = [layer.get_input(place) for place in range(layer.num_inputs)]
    return [tensor for tensor in tensors if tensor is not None]


def _outputs(layer: Any) -> list[Any]:
    return [layer.get_output(place) for place in range(layer.num_outputs)]
