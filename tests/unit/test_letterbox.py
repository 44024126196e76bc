"""Pictures into a network's input and points back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tricade.letterbox import Placement, place, placement_of, to_picture


@pytest.mark.parametrize(
    ("picture", "resize", "expected"),
    [
        ((1, 1), "letterbox", Placement((1, 1), (320, 320), 0, 160)),
        ((320, 640), "letterbox", Placement((320, 640), (320, 640), 0, 0)),
        ((640, 640), "letterbox", Placement((640, 640), (320, 320), 0, 160)),
        ((100, 400), "letterbox", Placement((100, 400), (160, 640), 80, 0)),
        ((1, 10_000), "letterbox", Placement((1, 10_000), (1, 640), 159, 0)),
        ((100, 400), "stretch", Placement((100, 400), (320, 640), 0, 0)),
    ],
)
def test_placement(picture, resize, expected):
    assert placement_of(picture, (320, 640), resize=resize) == expected


def test_place_pads_with_grey_and_centres():
    canvas = np.zeros((4, 8, 3), np.uint8)
    place(np.full((2, 2, 3), 200, np.uint8), canvas, resize="letterbox", pad=114)
    assert canvas[:, :, 0].tolist() == [[114, 114, 200, 200, 200, 200, 114, 114]] * 4


def test_place_repeats_the_edge():
    canvas = np.zeros((1, 6, 3), np.uint8)
    place(np.array([[[10] * 3, [20] * 3]], np.uint8), canvas, resize="letterbox", pad="edge")
    assert canvas[0, :, 0].tolist() == [10, 10, 10, 20, 20, 20]


def test_place_leaves_the_picture_alone():
    picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    canvas = np.empty_like(picture)
    place(picture, canvas, resize="stretch", pad=0)
    assert (canvas == picture).all()


sides = st.integers(1, 4000)


@given(st.tuples(sides, sides), st.tuples(sides, sides), st.sampled_from(["letterbox", "stretch"]), st.data())
def test_to_picture_is_the_inverse(picture, size, resize, data):
    placement = placement_of(picture, size, resize=resize)
    x, y = data.draw(st.tuples(st.floats(0, picture[1]), st.floats(0, picture[0])))
    scale_x, scale_y = placement.scale
    inside = np.array([[x * scale_x + placement.left, y * scale_y + placement.top]], np.float32)
    back = to_picture(inside, placement)
    assert back == pytest.approx(np.array([[x, y]]), abs=max(picture) * 1e-2)


@given(st.tuples(sides, sides), st.tuples(sides, sides))
def test_a_letterboxed_picture_lies_inside_and_touches_one_side(picture, size):
    placement = placement_of(picture, size, resize="letterbox")
    (high, wide), (height, width) = placement.inside, size
    assert high <= height
    assert wide <= width
    assert high == height or wide == width
    assert 0 <= placement.top <= height - high
    assert 0 <= placement.left <= width - wide


def test_points_outside_are_clipped_to_the_picture():
    placement = placement_of((100, 100), (100, 300), resize="letterbox")
    assert to_picture(np.array([[0, 50], [299, 120]], np.float32), placement).tolist() == [[0, 50], [100, 100]]


def test_no_points():
    assert to_picture(np.empty((0, 4, 2), np.float32), placement_of((1, 1), (1, 1), resize="stretch")).shape == (
        0,
        4,
        2,
    )
