"""Several arrays in one tensor, and what is no such tensor."""

from __future__ import annotations

import numpy as np
import pytest

from tricade.errors import BadRequest
from tricade.packet import Field, Packet

PACKET = Packet(
    "NOTE",
    Field("WIDE", np.int64, (-1, -1)),
    Field("SCORES", np.float32, (-1,)),
    Field("ROWS", np.int32, (-1,)),
    Field("RAW", np.uint8, (-1,)),
)
WHOLE = {
    "WIDE": np.array([[1, -(2**60)], [3, 4], [5, 6]], np.int64),
    "SCORES": np.array([0.5, np.nan, -0.0], np.float32),
    "ROWS": np.array([7], np.int32),
    "RAW": np.arange(5, dtype=np.uint8),
}
EMPTY = {name: array[:0] for name, array in WHOLE.items()}
NO_COLUMNS = WHOLE | {"WIDE": np.empty((4, 0), np.int64)}


@pytest.mark.parametrize("arrays", [EMPTY, WHOLE, NO_COLUMNS], ids=["empty", "whole", "no columns"])
def test_what_is_packed_comes_out_again(arrays):
    packed = PACKET.pack(arrays)
    assert (packed.dtype, packed.ndim) == (np.uint8, 1)
    found = PACKET.unpack(packed)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_how_it_lies():
    """By hand: two sides of WIDE, one each of the others, then the elements."""
    packed = PACKET.pack(EMPTY | {"WIDE": np.array([[258]], np.int64), "RAW": np.array([9], np.uint8)})
    sides = [1, 1, 0, 0, 1]
    assert packed.tolist() == [byte for side in sides for byte in (side, *[0] * 7)] + [2, 1, *[0] * 6] + [9]


def test_arrays_that_do_not_lie_in_order_are_put_so():
    wide = WHOLE["WIDE"].repeat(2, axis=1)[:, ::2]
    assert (PACKET.unpack(PACKET.pack(WHOLE | {"WIDE": wide}))["WIDE"] == WHOLE["WIDE"]).all()


def forged(place: int, side: int) -> np.ndarray:
    packed = PACKET.pack(WHOLE).copy()
    packed[8 * place : 8 * place + 8] = np.array([side], np.int64).view(np.uint8)
    return packed


def huge_and_empty() -> np.ndarray:
    """No elements, but a side that no array can have."""
    packed = PACKET.pack(EMPTY | {"WIDE": np.empty((0, 0), np.int64)}).copy()
    packed[8:16] = np.array([2**62], np.int64).view(np.uint8)
    return packed


def test_a_side_may_be_fixed():
    fixed = Packet("NOTE", Field("PAIRS", np.int32, (-1, 2)))
    assert fixed.unpack(fixed.pack({"PAIRS": np.array([[1, 2]], np.int32)}))["PAIRS"].tolist() == [[1, 2]]
    any_side = Packet("NOTE", Field("PAIRS", np.int32, (-1, -1)))
    with pytest.raises(BadRequest):
        fixed.unpack(any_side.pack({"PAIRS": np.array([[1, 2, 3]], np.int32)}))


@pytest.mark.parametrize(
    "packed",
    [
        np.empty(0, np.uint8),
        np.zeros(39, np.uint8),
        PACKET.pack(WHOLE)[:-1],
        np.append(PACKET.pack(WHOLE), np.uint8(0)),
        forged(0, -1),
        forged(0, 2**62),
        forged(4, 6),
        np.zeros((1, 40), np.uint8),
        huge_and_empty(),
    ],
    ids=["nothing", "short", "one less", "one more", "negative", "huge", "beyond", "rank", "huge and empty"],
)
def test_other_bytes_are_refused(packed):
    with pytest.raises(
        BadRequest, match=r"^NOTE: expected what the pipeline's own step has made of WIDE, SCORES, ROWS"
    ):
        PACKET.unpack(packed)
