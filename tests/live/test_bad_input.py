"""Requests that are wrong: each gets its own clear answer, and the server is as well as before."""

from __future__ import annotations

import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import cascade
import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from tricade_client import ServerRefused

GOOD = cascade.picture(cascade.objects(3))
JPEG = cascade.picture(cascade.objects(3), form="JPEG")


def bomb(side: int) -> bytes:
    """A PNG that says it has side × side pixels and holds none."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


BYTES = np.array([GOOD, None], np.object_)[:1]
CASES = {
    "empty": ([b""], "image 0: expected JPEG, PNG, WebP, BMP or TIFF, got 0 bytes"),
    "text": ([b"hello"], "image 0: expected JPEG, PNG, WebP, BMP or TIFF, got 5 bytes beginning with b'hello'"),
    "truncated jpeg": ([JPEG[: len(JPEG) // 2]], "image 0: cannot be decoded: image file is truncated"),
    "truncated png": ([GOOD[: len(GOOD) // 2]], "image 0: cannot be decoded: "),
    "huge": ([bomb(30_000)], "image 0: expected at most 50000000 pixels, got 30000 x 30000; send a smaller picture"),
    "many bytes": ([bytes(20_000_001)], "image 0: expected at most 20000000 bytes, got 20000001; send a smaller file"),
    "the second is bad": ([GOOD, b"no"], "image 1: expected JPEG, PNG, WebP, BMP or TIFF, got 2 bytes"),
    "no image": ([], "IMAGE: expected 1 to 8 encoded images, got shape [0]"),
    "too many": ([GOOD] * 9, "IMAGE: expected 1 to 8 encoded images, got shape [9]; split the list"),
    "pixels": (
        [np.zeros((4, 4, 3), np.uint8).tobytes()],
        "image 0: expected JPEG, PNG, WebP, BMP or TIFF, got 48 bytes",
    ),
}


@pytest.fixture(autouse=True)
def healthy_afterwards(server, squares):
    yield
    assert server.http("/v2/health/ready")[0] == 200
    assert server.http("/v2/models/squares/ready")[0] == 200
    assert len(squares.detect(GOOD)) == 3


@pytest.mark.parametrize("case", CASES)
def test_a_bad_image_is_refused_by_name(server, case):
    images, message = CASES[case]
    with server.triton() as triton, pytest.raises(InferenceServerException) as caught:
        triton.ask("squares", images)
    assert caught.value.status() == "StatusCode.INVALID_ARGUMENT"
    assert message in caught.value.message()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"IMAGE": np.zeros((1, 4, 4, 3), np.uint8)}, "data-type is 'UINT8', but model 'squares' expects 'BYTES'"),
        (
            {"IMAGE": np.zeros((1,), np.float32)},
            "inference input 'IMAGE' data-type is 'FP32', but model 'squares' expects",
        ),
        ({"PICTURE": BYTES}, "unexpected inference input 'PICTURE' for model 'squares'"),
        (
            {"IMAGE": BYTES.reshape(1, 1)},
            "unexpected shape for input 'IMAGE' for model 'squares'. Expected [-1], got [1,1]",
        ),
        ({}, "expected"),
        (
            {"IMAGE": BYTES, "THRESHOLD": np.array([1.5], np.float32)},
            "THRESHOLD: expected one number from 0 to 1, got [1.5]",
        ),
        ({"IMAGE": BYTES, "THRESHOLD": np.array([0.1, 0.2], np.float32)}, "unexpected shape for input 'THRESHOLD'"),
    ],
    ids=["raw pixels", "wrong type", "wrong name", "wrong rank", "nothing", "threshold above 1", "two thresholds"],
)
def test_a_wrong_request_is_refused(server, inputs, message):
    with server.triton() as triton, pytest.raises(InferenceServerException) as caught:
        triton.send("squares", inputs)
    assert caught.value.status() == "StatusCode.INVALID_ARGUMENT"
    assert message in caught.value.message()


def test_the_sdk_says_which_image_it_was(squares):
    with pytest.raises(ServerRefused, match="image 1") as caught:
        squares.detect([GOOD, b"no"])
    assert caught.value.image == 1


def test_neighbours_of_a_bad_request_are_not_touched(server):
    pictures = [GOOD if number % 3 else b"bad" for number in range(60)]

    def ask(picture: bytes) -> int | str:
        try:
            return len(client.detect(picture))
        except ServerRefused as error:
            return str(error)

    with server.client("squares") as client, ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, pictures))
    for picture, answer in zip(pictures, answers, strict=True):
        assert answer == 3 if picture == GOOD else "got 3 bytes beginning with b'bad'" in str(answer)


def test_bad_images_are_failures_in_the_metrics(server):
    """Triton 2.51 counts the failure of an ensemble twice."""
    before = server.metric("nv_inference_request_failure", "squares")
    with server.triton() as triton:
        for _ in range(10):
            with pytest.raises(InferenceServerException):
                triton.ask("squares", [b"bad"])
    assert server.metric("nv_inference_request_failure", "squares") - before in (10, 20)
