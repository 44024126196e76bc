"""Crops by hand."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tricade.cut import are_boxes, crop_boxes, crop_polygon, fit, fitted_width, padded, turned_if_tall

PICTURE = np.arange(10 * 12 * 3, dtype=np.uint8).reshape(10, 12, 3)


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((0, 0, 12, 10), PICTURE),
        ((2, 3, 5, 7), PICTURE[3:7, 2:5]),
        ((2.2, 3.9, 4.1, 6.0), PICTURE[3:6, 2:5]),
        ((5, 5, 5.001, 5.001), PICTURE[5:6, 5:6]),
        ((11.999, 9.999, 12, 10), PICTURE[9:10, 11:12]),
        ((12, 10, 12, 10), PICTURE[9:10, 11:12]),
    ],
)
def test_crop_boxes_takes_every_pixel_it_touches(box, expected):
    (crop,) = crop_boxes(PICTURE, np.array([box], np.float32))
    assert crop.tolist() == expected.tolist()
    assert np.shares_memory(crop, PICTURE)


def test_no_boxes_no_crops():
    assert crop_boxes(PICTURE, np.empty((0, 4), np.float32)) == []


def corners_of(left: float, top: float, right: float, bottom: float) -> np.ndarray:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)


def test_a_straight_polygon_gives_the_box():
    assert crop_polygon(PICTURE, corners_of(2, 3, 6, 8)).tolist() == PICTURE[3:8, 2:6].tolist()


def test_a_tilted_polygon_is_straightened():
    upright = np.zeros((200, 200, 3), np.uint8)
    upright[80:120, 40:160] = 255
    turn = cv2.getRotationMatrix2D((100, 100), 30, 1)
    tilted = cv2.warpAffine(upright, turn, (200, 200))
    corners = cv2.transform(corners_of(40, 80, 160, 120)[None], turn)[0].astype(np.float32)
    crop = crop_polygon(tilted, corners)
    assert crop.shape == (40, 120, 3)
    assert crop[3:-3, 3:-3].min() > 240


def test_a_polygon_in_a_picture_of_any_length():
    """OpenCV warps out of no picture with a side of more than 32766 pixels."""
    picture = np.zeros((40_000, 20, 3), np.uint8)
    picture[39_000:39_100] = 255
    corners = np.array([[5, 39_010], [15, 39_011], [15, 39_031], [5, 39_030]], np.float32)
    crop = crop_polygon(picture, corners)
    assert crop.shape == (20, 10, 3)
    assert crop.min() == 255


@pytest.mark.parametrize("corners", [corners_of(-3, -2, 4, 5), corners_of(8, 6, 15, 14), corners_of(-9, 2, -3, 5)])
def test_what_is_outside_the_picture_repeats_its_edge(corners):
    """As warping out of the whole picture does."""
    straight = np.array([[0, 0], [7, 0], [7, 7], [0, 7]], np.float32)
    if corners[1, 0] < 0:
        straight = np.array([[0, 0], [6, 0], [6, 3], [0, 3]], np.float32)
    size = straight[2].astype(int).tolist()
    if corners[2, 1] == 14:
        straight, size = np.array([[0, 0], [7, 0], [7, 8], [0, 8]], np.float32), [7, 8]
    whole = cv2.warpPerspective(
        PICTURE, cv2.getPerspectiveTransform(corners, straight), size,
        flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE,
    )  # fmt: skip
    assert (crop_polygon(PICTURE, corners) == whole).all()


def test_are_boxes():
    box = corners_of(1, 2, 3, 4)
    nudged = [box.copy() for _ in range(8)]
    for place, corners in enumerate(nudged):
        corners.reshape(-1)[place] += 0.01
    turned = [box[[1, 2, 3, 0]], box[[2, 3, 0, 1]], box[[3, 0, 1, 2]]]
    assert are_boxes(np.empty((0, 4, 2), np.float32)).shape == (0,)
    assert are_boxes(np.array([box, *nudged, turned[0], turned[2]])).tolist() == [True, *[False] * 10]


@pytest.mark.parametrize("share", [0, 0.5])
def test_padded(share):
    """A box of 4 × 2 with half of its sides around it is twice as large; so are corners, along their own sides."""
    boxes = np.array([[10, 10, 14, 12], [0, 0, 2, 2]], np.float32)
    corners = np.array([[[1, 0], [2, 1], [1, 2], [0, 1]]], np.float32)
    assert padded(boxes[:0], share).shape == (0, 4)
    if share == 0:
        assert padded(boxes, share).tolist() == boxes.tolist()
    else:
        assert padded(boxes, share).tolist() == [[8, 9, 16, 13], [-1, -1, 3, 3]]
        assert padded(corners, share).tolist() == [[[1, -1], [3, 1], [1, 3], [-1, 1]]]


@pytest.mark.parametrize(
    ("size", "ratio", "turned"), [((15, 10), None, False), ((15, 10), 1.5, True), ((14, 10), 1.5, False)]
)
def test_tall_crops_are_turned_counter_clockwise(size, ratio, turned):
    crop = np.zeros((*size, 3), np.uint8)
    crop[0] = 255  # the upper edge becomes the left one
    result = turned_if_tall(crop, ratio)
    assert result.shape[:2] == (size[::-1] if turned else size)
    assert result[:, 0].min() == (255 if turned else 0)


@pytest.mark.parametrize(
    ("size", "expected"), [((48, 100), 100), ((24, 100), 200), ((48, 5000), 640), ((1000, 1), 1), ((47, 100), 103)]
)
def test_fitted_width(size, expected):
    assert fitted_width(np.empty((*size, 3), np.uint8), height=48, max_width=640) == expected


def test_fit_writes_into_a_part_of_a_batch():
    batch = np.zeros((4, 8, 3), np.uint8)
    fit(np.full((2, 2, 3), 9, np.uint8), batch[:, :4])
    assert batch[:, :, 0].tolist() == [[9, 9, 9, 9, 0, 0, 0, 0]] * 4


def test_fit_averages_when_it_shrinks_a_lot():
    checkers = np.indices((64, 64)).sum(axis=0) % 2 * 255
    small = np.empty((8, 8, 3), np.uint8)
    fit(np.repeat(checkers[..., None], 3, axis=2).astype(np.uint8), small)
    assert abs(int(small.min()) - 127) <= 1
    assert abs(int(small.max()) - 127) <= 1
