"""Requests and answers as Triton's gRPC messages hold them, pure: tensors to raw bytes and back.

By hand: `tritonclient`'s own way through its input and result objects costs 0.1 to 0.4 ms more a call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse

from .codec import Request, Tensor
from .errors import ResultMismatch
from .results import Arrays

# Triton's names of types (KServe's open inference protocol 2, tensor data types); BYTES has no fixed size.
_TYPES = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
}
_LENGTH_BYTES = 4  # before each element of BYTES, little-endian


def message_from_request(request: Request) -> ModelInferRequest:
    """All tensors as raw bytes."""
    message = ModelInferRequest(model_name=request.model)
    for tensor in request.inputs:
        message.inputs.add(name=tensor.name, datatype=tensor.dtype, shape=tensor.data.shape)
        message.raw_input_contents.append(_raw(tensor))
    for name in request.outputs:
        message.outputs.add(name=name)
    return message


def arrays_from_message(message: ModelInferResponse) -> Arrays:
    """Output arrays by name, read-only; raises `ResultMismatch` where bytes and shapes are not of each other."""
    outputs, contents = message.outputs, message.raw_output_contents
    if len(outputs) != len(contents):
        raise ResultMismatch(f"expected the bytes of {len(outputs)} tensors, got those of {len(contents)}")
    return {
        output.name: _array(output.name, output.datatype, tuple(output.shape), raw)
        for output, raw in zip(outputs, contents, strict=True)
    }


def _raw(tensor: Tensor) -> bytes:
    if tensor.dtype != "BYTES":
        return tensor.data.tobytes()
    parts: list[bytes] = []
    for element in tensor.data.ravel().tolist():
        parts += (len(element).to_bytes(_LENGTH_BYTES, "little"), element)
    return b"".join(parts)


def _array(name: str, datatype: str, shape: tuple[int, ...], raw: bytes) -> NDArray[Any]:
    try:
        if datatype == "BYTES":
            elements = _elements(raw)
            flat: NDArray[Any] = np.empty(len(elements), np.object_)
            flat[:] = elements
        else:
            flat = np.frombuffer(raw, _TYPES[datatype])
        return flat.reshape(shape)
    except (KeyError, ValueError) as error:
        raise ResultMismatch(f"{name}: {len(raw)} bytes are no {datatype} {list(shape)}") from error


def _elements(raw: bytes) -> list[bytes]:
    """The elements of a BYTES tensor; raises `ValueError` where lengths and bytes are not of each other."""
    elements: list[bytes] = []
    start, end = 0, len(raw)
    while start < end:
        first = start + _LENGTH_BYTES
        start = first + int.from_bytes(raw[start:first], "little")
        elements.append(raw[first:start])
    if start != end:
        raise ValueError("cut off")
    return elements
