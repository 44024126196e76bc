"""Triton's messages by hand: what `tritonclient` makes of the same tensors is the reference."""

from __future__ import annotations

import numpy as np
import pytest
from tritonclient import grpc as triton
from tritonclient.grpc.service_pb2 import ModelInferResponse
from tritonclient.utils import np_to_triton_dtype, serialize_byte_tensor

from tricade_client import ResultMismatch
from tricade_client.codec import request_from_images
from tricade_client.messages import arrays_from_message, message_from_request

NAMES = np.array([[b"cat", b""], [b"\xc3\xa9", b"x" * 300]], np.object_)
TENSORS = {
    "TEXT": NAMES,
    "NONE": np.empty((0, 2), np.object_),
    "EMPTY": np.empty((0, 4, 2), np.float32),
    "TRUE": np.array([True, False]),
    "HALF": np.array([0.5, -2], np.float16),
    "ONE": np.array(7, np.int64).reshape(1),
    **{
        kind.__name__: np.arange(6).reshape(2, 3).astype(kind)
        for kind in (np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.float32, np.float64)
    },
}


def answer_of(tensors):
    message = ModelInferResponse()
    for name, array in tensors.items():
        is_bytes = array.dtype == np.object_
        message.outputs.add(
            name=name, datatype="BYTES" if is_bytes else np_to_triton_dtype(array.dtype), shape=array.shape
        )
        raw = b"".join(serialize_byte_tensor(array).ravel().tolist()) if is_bytes else array.tobytes()
        message.raw_output_contents.append(raw)
    return message


def test_answers_read_as_tritonclient_reads_them():
    message = answer_of(TENSORS)
    theirs = triton.InferResult(message)
    found = arrays_from_message(message)
    assert list(found) == list(TENSORS)
    for name, array in TENSORS.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tolist() == array.tolist()
        if array.size:  # of none, theirs is flat
            assert theirs.as_numpy(name).tolist() == found[name].tolist()


def test_requests_are_written_as_tritonclient_writes_them():
    request = request_from_images("text", [b"one", b"", b"\0" * 70000], threshold=0.25, outputs=("COUNT", "BOXES"))
    inputs = [
        triton.InferInput(tensor.name, list(tensor.data.shape), tensor.dtype).set_data_from_numpy(tensor.data)
        for tensor in request.inputs
    ]
    message = message_from_request(request)
    assert [(each.name, each.datatype, list(each.shape)) for each in message.inputs] == [
        (each.name(), each.datatype(), list(each.shape())) for each in inputs
    ]
    assert list(message.raw_input_contents) == [each._get_content() for each in inputs]
    assert (message.model_name, [each.name for each in message.outputs]) == ("text", ["COUNT", "BOXES"])


@pytest.mark.parametrize(
    ("datatype", "shape", "raw"),
    [
        ("FP32", [2], b"1234"),
        ("FP32", [1], b"123"),
        ("INT9", [1], b"1234"),
        ("BYTES", [1], b"\4\0\0\0abc"),
        ("BYTES", [1], b"\3\0\0\0abc\1"),
        ("BYTES", [2], b"\3\0\0\0abc"),
    ],
)
def test_bytes_that_are_not_the_tensors(datatype, shape, raw):
    message = ModelInferResponse()
    message.outputs.add(name="BOXES", datatype=datatype, shape=shape)
    message.raw_output_contents.append(raw)
    with pytest.raises(ResultMismatch, match=f"BOXES: {len(raw)} bytes are no {datatype}"):
        arrays_from_message(message)


def test_tensors_without_bytes():
    message = ModelInferResponse()
    message.outputs.add(name="BOXES", datatype="FP32", shape=[1])
    with pytest.raises(ResultMismatch, match="expected the bytes of 1 tensors, got those of 0"):
        arrays_from_message(message)
