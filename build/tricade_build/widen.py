"""`widen`: every number of a graph that is fp16 as fp32 instead."""

from __future__ import annotations

import onnx
from onnx import TensorProto, numpy_helper

from .wires import inner_graphs

FULL, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
TYPES = ("to", "dtype", "output_dtype")  # attributes that name a type


def widen(graph: onnx.GraphProto) -> None:
    """In place, with inputs, outputs, branches and loops; inferred types are dropped. Casts to fp16 remain as casts."""
    del graph.value_info[:]
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == HALF:
            value.type.tensor_type.elem_type = FULL
    for constant in graph.initializer:
        _widen_constant(constant)
    for sparse in graph.sparse_initializer:
        _widen_constant(sparse.values)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in TYPES and attribute.i == HALF:
                attribute.i = FULL
            if attribute.HasField("t"):
                _widen_constant(attribute.t)
        for inner in inner_graphs(node):
            widen(inner)


def halves_of(graph: onnx.GraphProto) -> set[str]:
    """The names of all fp16 tensors of a graph whose types were inferred, with those of branches and loops."""
    values = (*graph.input, *graph.output, *graph.value_info)
    halves = {value.name for value in values if value.type.tensor_type.elem_type == HALF}
    return halves.union(*(halves_of(inner) for node in graph.node for inner in inner_graphs(node)))


def _widen_constant(constant: onnx.TensorProto) -> None:
    if constant.data_type == HALF:
        constant.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(constant).astype("float32"), constant.name))
