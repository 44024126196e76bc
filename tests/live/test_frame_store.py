"""Decoded pictures in shared memory, and everything that can happen to them on the way."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import cascade
import numpy as np
import processes
import pytest
import running
from tritonclient.utils import InferenceServerException

from tricade.frames import FRAME, FrameReader
from tricade_client import Timeout, TricadeError

OBJECTS = cascade.objects(6)
PICTURE = cascade.picture(OBJECTS)
SLOTS = 2 * 32  # instances × slots


@pytest.fixture(scope="module")
def hurt(squares_repository):
    """A server of its own: these tests kill parts of it."""
    with running.served(squares_repository) as server:
        yield server


@pytest.fixture(autouse=True)
def right_afterwards(hurt):
    yield
    with hurt.client("squares") as client:
        assert_right(client.detect(PICTURE))


def assert_right(result, objects=OBJECTS) -> None:
    assert [found.classes["colour"].label for found in result] == list(cascade.expected(objects).colours)


def preprocessed(triton, picture: bytes = PICTURE) -> dict[str, np.ndarray]:
    """What `preprocess` tells `crop`."""
    return FRAME.unpack(triton.ask("squares_preprocess", [picture])["FRAME"])


def crop(triton, frame: dict[str, np.ndarray], objects=OBJECTS) -> list[list[int]]:
    """The middle pixel of each crop that `crop` cuts out of the picture."""
    expected = cascade.expected(objects)
    table = np.zeros((1, 400, 6), np.float32)
    rows = np.concatenate([expected.boxes, expected.scores[:, None], np.zeros((len(objects), 1))], axis=1)
    table[0, : len(objects)] = rows
    crops = triton.send("squares_crop", {"FRAME": FRAME.pack(frame), "CANDIDATES": table})["COLOUR_CROPS"]
    return crops[:, 8, 8].tolist()


def test_the_picture_travels_as_a_handle(hurt):
    with hurt.triton() as triton:
        frame = preprocessed(triton)
        assert frame["HANDLES"][0, 0] > 0
        assert frame["PIXELS"].shape == (0,)
        assert crop(triton, frame) == [list(cascade.COLOURS[colour]) for colour in cascade.expected(OBJECTS).colours]


def test_a_handle_can_be_used_until_its_place_is_reused_and_then_never(hurt):
    """A second use of a handle gives the same picture or an error, whatever lies there by then."""
    with hurt.triton() as triton:
        frame = preprocessed(triton)
        assert crop(triton, frame) == crop(triton, frame)
        others = cascade.objects(6, seed=9)
        for _ in range(4):
            crop(triton, preprocessed(triton, cascade.picture(others)), others)
        with pytest.raises(InferenceServerException, match="reused before its crops were cut") as caught:
            crop(triton, frame)
        assert caught.value.status() == "StatusCode.UNAVAILABLE"


def test_a_forged_handle_is_refused(hurt):
    with hurt.triton() as triton:
        frame = preprocessed(triton)
        frame["HANDLES"] = frame["HANDLES"] + np.array([0, 0, 1, 0, 0, 0])
        with pytest.raises(InferenceServerException, match="reused before its crops were cut"):
            crop(triton, frame)


def test_a_handle_of_a_killed_process_gives_its_own_picture_or_an_error(hurt):
    with hurt.triton() as triton:
        frame = preprocessed(triton)
        for stub in hurt.stubs("squares_preprocess"):
            os.kill(stub, signal.SIGKILL)
        processes.wait_for(lambda: answers(hurt))
        try:
            outcome = crop(triton, frame)
        except InferenceServerException as error:
            outcome = (error.status(), error.message())
    gone = ("StatusCode.UNAVAILABLE", "the process that decoded the picture is gone; call again")
    assert outcome in ([list(cascade.COLOURS[c]) for c in cascade.expected(OBJECTS).colours], gone)


@pytest.mark.parametrize("stage", ["preprocess", "crop", "label", "colour", "detector"])
def test_any_stage_may_be_killed_and_comes_back(hurt, stage):
    pictures = [cascade.objects(5, seed=seed) for seed in range(300)]

    def ask(objects: list[cascade.Object]) -> bool:
        try:
            assert_right(client.detect(cascade.picture(objects)), objects)
        except TricadeError:
            return False
        return True

    with hurt.client("squares") as client, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, objects) for objects in pictures]
        processes.wait_for(lambda: sum(future.done() for future in asked) > 20)
        os.kill(hurt.stubs(f"squares_{stage}")[0], signal.SIGKILL)
        assert sum(future.result() for future in asked) > 20
    processes.wait_for(lambda: answers(hurt))


def answers(server) -> bool:
    """Whether it answers, and rightly, several times in a row: every instance is back."""
    with server.client("squares", timeout_s=10) as client:
        try:
            for _ in range(6):
                assert_right(client.detect(PICTURE))
        except TricadeError:
            return False
    return True


def test_slots_that_are_never_freed_cost_speed_and_not_answers(hurt):
    with hurt.triton() as triton:
        frames = [preprocessed(triton) for _ in range(SLOTS + 4)]
        assert frames[-1]["HANDLES"][0, 0] == 0
        assert frames[-1]["PIXELS"].size == cascade.SIDE**2 * 3
        with hurt.client("squares") as client:
            for _ in range(4):
                assert_right(client.detect(PICTURE))
        for frame in frames:
            crop(triton, frame)
        assert preprocessed(triton)["HANDLES"][0, 0] > 0


def test_a_picture_larger_than_the_ring_travels_inline(hurt):
    scale = 15  # 4800 × 4800 pixels, 69 MB
    with hurt.client("squares", timeout_s=60) as client:
        result = client.detect(cascade.picture(OBJECTS, scale=scale))
    assert result.arrays["BOXES"] == pytest.approx(cascade.expected(OBJECTS, scale=scale).boxes, abs=0.05)
    assert_right(result)


def test_refused_and_cancelled_calls_leave_room(hurt):
    """Calls that end on the way leave their pictures behind; they do not pile up where others need room."""
    with hurt.client("squares") as client, ThreadPoolExecutor(16) as pool:

        def hurry(number: int) -> None:
            with suppress(Timeout):
                client.detect([PICTURE] * 4, timeout_s=0.002 + number % 10 / 1000)

        list(pool.map(hurry, range(200)))
        for _ in range(10):
            assert_right(client.detect(PICTURE))


def test_frames_of_other_callers_are_never_seen(hurt):
    """32 callers with pictures of one colour each: a crop of another picture would have another colour."""
    names = list(cascade.COLOURS)
    pictures = [[cascade.Object(o.row, o.column, names[seed % 8]) for o in cascade.objects(12)] for seed in range(320)]
    with hurt.client("squares") as client, ThreadPoolExecutor(32) as pool:
        results = list(pool.map(client.detect, [cascade.picture(objects) for objects in pictures]))
    for result, objects in zip(results, pictures, strict=True):
        assert {found.classes["colour"].label for found in result} == {objects[0].colour}


def test_a_reader_maps_what_it_needs_and_no_more(hurt):
    """A ring that is gone is forgotten."""
    with hurt.triton() as triton:
        frame = preprocessed(triton)
    reader = FrameReader()
    picture = reader.open(frame["HANDLES"][0], frame["PIXELS"]).pixels
    assert (picture == cascade.pixels(OBJECTS)).all()
