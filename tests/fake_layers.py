"""The layers of a network as TensorRT's parser makes them, and of an engine as its inspector tells them, in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from types import SimpleNamespace
from typing import Any

import onnx

_KINDS = {
    "Conv": "CONVOLUTION", "ConvTranspose": "DECONVOLUTION", "MatMul": "MATRIX_MULTIPLY", "Gemm": "MATRIX_MULTIPLY",
    "Cast": "CAST", "QuantizeLinear": "QUANTIZE", "DequantizeLinear": "DEQUANTIZE", "Relu": "ACTIVATION",
    "Sigmoid": "ACTIVATION", "Softmax": "SOFTMAX", "ReduceMean": "REDUCE", "GlobalAveragePool": "REDUCE",
    "Reshape": "SHUFFLE", "Flatten": "SHUFFLE", "Transpose": "SHUFFLE", "Concat": "CONCATENATION", "Shape": "SHAPE",
    "Slice": "SLICE", "Gather": "GATHER", "TopK": "TOPK", "Identity": "IDENTITY",
}  # fmt: skip
_NAMES = {1: "FLOAT", 2: "UINT8", 3: "INT8", 6: "INT32", 7: "INT64", 9: "BOOL", 10: "HALF"}
_OWN_TYPES = ("CAST", "SHAPE", "QUANTIZE", "DEQUANTIZE")  # a type that is set for them fails when they are compiled
LayerType = Enum("LayerType", sorted({*_KINDS.values(), "CONSTANT", "ELEMENTWISE"}))


def type_of(kind: int, types: Any) -> Any:
    """TensorRT's for ONNX's: before 10 there is no INT64."""
    return types[_NAMES[kind] if _NAMES[kind] in types.__members__ else "INT32"]


class Layer:
    """What every version's has."""

    __slots__ = ("_inputs", "_outputs", "metadata", "name", "type")

    def __init__(self, kind: str, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.type, self.name = LayerType[kind], name
        self.metadata = "" if kind == "CONSTANT" else f"[ONNX Layer: {name}]"
        self._inputs, self._outputs = inputs, outputs

    num_inputs = property(lambda self: len(self._inputs))
    num_outputs = property(lambda self: len(self._outputs))

    def get_input(self, place: int) -> Any:
        return self._inputs[place]

    def get_output(self, place: int) -> Any:
        return self._outputs[place]


class WeakLayer(Layer):
    """Of a version that has networks without types of their own."""

    __slots__ = ("_precision", "bound")

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._precision: Any = None
        self.bound: dict[int, Any] = {}  # output types that were set

    @property
    def precision_is_set(self) -> bool:
        return self._precision is not None

    @property
    def precision(self) -> Any:
        return self._precision or self.get_output(0).dtype

    @precision.setter
    def precision(self, dtype: Any) -> None:
        self._check()
        self._precision = dtype

    def output_type_is_set(self, place: int) -> bool:
        return place in self.bound

    def set_output_type(self, place: int, dtype: Any) -> None:
        self._check()
        assert self.get_output(place).dtype.name in ("FLOAT", "HALF")
        self.bound[place] = dtype

    def _check(self) -> None:
        assert self.type.name not in _OWN_TYPES
        numbers = [t for t in (*self._inputs, *self._outputs) if t is not None and t.dtype.name in ("FLOAT", "HALF")]
        assert numbers


def layers_from(graph: bytes, types: Any, *, weak: bool) -> list[Any]:
    """Each constant before the first node that takes it, as the parser does."""
    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(graph))
    values = (*model.graph.input, *model.graph.output, *model.graph.value_info)
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    constants = {constant.name: constant.data_type for constant in model.graph.initializer}
    make = WeakLayer if weak else Layer
    made: dict[str, Any] = {}

    def tensor(name: str, kind: int) -> Any:
        made[name] = SimpleNamespace(name=name, dtype=type_of(kind, types), is_shape_tensor=False)
        return made[name]

    for value in model.graph.input:
        tensor(value.name, kinds[value.name])
    layers = []
    for node in model.graph.node:
        new = dict.fromkeys(name for name in node.input if name in constants and name not in made)
        layers += [make("CONSTANT", name, [], [tensor(name, constants[name])]) for name in new]
        kind = "CONSTANT" if node.op_type == "Constant" else _KINDS.get(node.op_type, "ELEMENTWISE")
        outputs = [tensor(name, kinds.get(name, 1)) for name in node.output if name]
        for output in outputs:
            output.is_shape_tensor = node.op_type == "Shape"
        inputs = [made.get(name) for name in node.input]
        layers.append(make(kind, node.name or f"node_of_{node.output[0]}", inputs, outputs))
    return layers


def computed(layers: Sequence[Any], flags: Sequence[str], *, strong: bool) -> list[dict[str, Any]]:
    """What an engine computes in: the network's types where they bind, else the fastest that the flags allow."""
    makers = {layer.get_output(0).name: layer for layer in layers}

    def precision(layer: Any) -> str:
        source = makers.get(getattr(layer.get_input(0), "name", "")) if layer.num_inputs else None
        own = layer.get_output(0).dtype.name
        if source is not None and source.type.name == "DEQUANTIZE":
            return "INT8" if strong or "INT8" in flags else "FLOAT"
        if strong or own not in ("FLOAT", "HALF"):
            return str(own)
        if "FP16" not in flags:
            assert not layer.precision_is_set or layer.precision.name == "FLOAT"
            return "FLOAT"
        obeys = "OBEY_PRECISION_CONSTRAINTS" in flags
        return str(layer.precision.name) if layer.precision_is_set and obeys else "HALF"

    return [
        {"nodes": [layer.name], "kind": layer.type.name, "type": precision(layer)}
        for layer in layers
        if layer.type.name != "CONSTANT"
    ]


def told(layers: Sequence[Mapping[str, Any]], version: str) -> str:
    """The inspector's JSON; an activation is merged with the convolution before it."""
    described = [_described(layer, version) for layer in _merged(layers)]
    shape = {"Name": "shape", "Inputs": [], "Outputs": [_tensor("INT32", version)]}
    return json.dumps({"Layers": [*described, shape, "a name alone"]})


def _merged(layers: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    place = 0
    while place < len(layers):
        pair = layers[place : place + 2]
        if [layer["kind"] for layer in pair] == ["CONVOLUTION", "ACTIVATION"]:
            yield {**pair[0], "nodes": [*pair[0]["nodes"], *pair[1]["nodes"]]}
            place += 2
        else:
            yield layers[place]
            place += 1


def _described(layer: Mapping[str, Any], version: str) -> dict[str, Any]:
    tensor, old = _tensor(layer["type"], version), version.startswith("8.")
    about = {"Name": " + ".join(layer["nodes"]), "Inputs": [tensor], "Outputs": [tensor]}
    if layer["kind"] == "CONVOLUTION":
        about |= {"LayerType": "CaskConvolution", "ParameterType": "Convolution"}
        about |= {"Weights": {"Type": layer["type"].capitalize(), "Count": 9}}
    elif layer["kind"] == "MATRIX_MULTIPLY":
        about |= {"LayerType": "MatrixMultiply" if old else "gemm"}
    else:
        about |= {"LayerType": "PointWiseV2" if old else "kgen"}
    if not old:
        about["Name"] = f"__myl_{len(layer['nodes'])}"
        about["Metadata"] = "\x1e".join(f"[ONNX Layer: {name}]" for name in layer["nodes"])
    return about


def _tensor(kind: str, version: str) -> dict[str, Any]:
    if version.startswith("8."):
        name = {"HALF": "FP16", "FLOAT": "FP32", "INT8": "Int8"}.get(kind, kind)
        return {
            "Name": "t",
            "Location": "Device",
            "Format/Datatype": f"Channel major {name} format where channel % 8 == 0",
        }
    if version.startswith("10."):
        return {"Name": "t", "Format/Datatype": kind.capitalize()}
    return {"Name": "t", "Format": "Row major linear format (kLINEAR)", "DataType": kind.capitalize()}
