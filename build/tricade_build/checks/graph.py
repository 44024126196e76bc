"""What can be told of an ONNX file without its weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

_TRITON_TYPES: dict[int, str] = {
    TensorProto.BOOL: "BOOL",
    TensorProto.UINT8: "UINT8",
    TensorProto.UINT16: "UINT16",
    TensorProto.UINT32: "UINT32",
    TensorProto.UINT64: "UINT64",
    TensorProto.INT8: "INT8",
    TensorProto.INT16: "INT16",
    TensorProto.INT32: "INT32",
    TensorProto.INT64: "INT64",
    TensorProto.FLOAT16: "FP16",
    TensorProto.FLOAT: "FP32",
    TensorProto.DOUBLE: "FP64",
    TensorProto.BFLOAT16: "BF16",
    TensorProto.STRING: "STRING",
}
_KEEPS_CLASSES = ("ArgMax", "Cast", "Clip", "Identity", "LogSoftmax", "Sigmoid", "Softmax", "TopK")
_DEPTH = 16  # nodes between an INDEX and the weights that make its classes


@dataclass(frozen=True)
class Value:
    """An input or output with Triton's type name; `sides` with the batch, -1 for any, None where no shape is given."""

    name: str
    dtype: str
    sides: tuple[int, ...] | None


@dataclass(frozen=True)
class Graph:
    """An opened file, or why it cannot be opened."""

    file: Path
    model: onnx.ModelProto
    problem: str = ""

    @classmethod
    def read(cls, file: Path) -> Graph:
        try:
            model = onnx.load(file, load_external_data=False)
        except (OSError, DecodeError) as error:
            return cls(file, onnx.ModelProto(), str(error) or type(error).__name__)
        return cls(file, model, "" if model.graph.output else "it holds no graph")

    @property
    def opset(self) -> int:
        return max((entry.version for entry in self.model.opset_import if entry.domain in ("", "ai.onnx")), default=0)

    @property
    def inputs(self) -> dict[str, Value]:
        weights = {tensor.name for tensor in self.model.graph.initializer}
        return {entry.name: _value(entry) for entry in self.model.graph.input if entry.name not in weights}

    @property
    def outputs(self) -> dict[str, Value]:
        return {entry.name: _value(entry) for entry in self.model.graph.output}

    @property
    def external_files(self) -> dict[str, int]:
        """Files beside this one that hold weights, and how many bytes each must have at least."""
        ends: dict[str, int] = {}
        for tensor in _tensors(self.model.graph):
            if uses_external_data(tensor):
                info = ExternalDataInfo(tensor)
                end = int(info.offset or 0) + int(info.length or 0)
                ends[info.location] = max(end, ends.get(info.location, 0))
        return ends

    @property
    def classes(self) -> int | None:
        """How many classes INDEX can name, by the weights that make them; None where that is not plain."""
        makers = {name: node for node in self.model.graph.node for name in node.output}
        dims = {tensor.name: tuple(tensor.dims) for tensor in self.model.graph.initializer}
        name = "INDEX"
        for _ in range(_DEPTH):
            node = makers.get(name)
            if node is None:
                return None
            if node.op_type not in _KEEPS_CLASSES:
                return _columns(node, [dims.get(given) for given in node.input])
            name = node.input[0]
        return None


def _columns(node: onnx.NodeProto, dims: list[tuple[int, ...] | None]) -> int | None:
    """The last side of what a Gemm, MatMul or added bias gives."""
    if node.op_type == "Gemm" and len(dims) > 1 and dims[1]:
        turned = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        return dims[1][0] if turned else dims[1][-1]
    if node.op_type == "MatMul" and dims[1]:
        return dims[1][-1]
    if node.op_type == "Add":
        return next((given[-1] for given in dims if given and given[-1] > 1), None)
    return None


def _value(entry: onnx.ValueInfoProto) -> Value:
    kind = entry.type.tensor_type
    known = _TRITON_TYPES.get(kind.elem_type) or str(kind.elem_type)
    if not kind.HasField("shape"):
        return Value(entry.name, known, None)
    return Value(
        entry.name, known, tuple(side.dim_value if side.HasField("dim_value") else -1 for side in kind.shape.dim)
    )


def _tensors(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for inner in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from _tensors(inner)
