"""Text lines out of drawn probability maps."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tricade.dbnet import DbnetSettings, lines_of

PLAIN = DbnetSettings(binarize=0.3, unclip=0.0, dilate=False)


def drawn(*rectangles: tuple[tuple[float, float], tuple[float, float], float, int]) -> np.ndarray:
    probability = np.zeros((200, 300), np.uint8)
    for centre, size, angle, value in rectangles:
        cv2.fillPoly(probability, [np.round(cv2.boxPoints((centre, size, angle))).astype(np.int32)], value)
    return probability


def test_an_empty_map_has_no_lines():
    corners, scores = lines_of(drawn(), PLAIN, threshold=0.5)
    assert corners.shape == (0, 4, 2)
    assert corners.dtype == np.float32
    assert scores.shape == (0,)


def test_corners_run_clockwise_from_the_top_left():
    corners, scores = lines_of(drawn(((100, 50), (80, 20), 0, 255)), PLAIN, threshold=0.5)
    assert corners[0] == pytest.approx(np.array([[60, 40], [140, 40], [140, 60], [60, 60]]), abs=0.6)
    assert scores == pytest.approx([1.0])


def test_a_tilted_line_keeps_its_tilt():
    corners, _ = lines_of(drawn(((150, 100), (120, 20), 20, 255)), PLAIN, threshold=0.5)
    top = corners[0, 1] - corners[0, 0]
    assert np.degrees(np.arctan2(top[1], top[0])) == pytest.approx(20, abs=1)
    assert np.linalg.norm(top) == pytest.approx(120, abs=2)


def test_unclip_grows_every_side_by_area_times_ratio_over_length():
    settings = DbnetSettings(binarize=0.3, unclip=1.5, dilate=False)
    (corners,), _ = lines_of(drawn(((100, 50), (80, 20), 0, 255)), settings, threshold=0.5)
    distance = 80 * 20 * 1.5 / (2 * (80 + 20))
    assert corners[0] == pytest.approx([60 - distance, 40 - distance], abs=0.6)
    assert corners[2] == pytest.approx([140 + distance, 60 + distance], abs=0.6)


@pytest.mark.parametrize(("value", "threshold", "count"), [(255, 0.5, 1), (140, 0.5, 1), (120, 0.5, 0), (120, 0.4, 1)])
def test_the_score_is_the_mean_probability(value, threshold, count):
    _, scores = lines_of(drawn(((100, 50), (80, 20), 0, value)), PLAIN, threshold=threshold)
    assert scores == pytest.approx([value / 255] * count)


def test_lines_come_best_first_and_specks_not_at_all():
    probability = drawn(((50, 50), (40, 20), 0, 180), ((200, 50), (40, 20), 0, 250), ((50, 150), (2, 2), 0, 255))
    _, scores = lines_of(probability, PLAIN, threshold=0.5)
    assert scores == pytest.approx([250 / 255, 180 / 255])


def test_dilation_joins_what_one_pixel_separates():
    probability = drawn(((50, 50), (40, 20), 0, 255), ((92, 50), (40, 20), 0, 255))
    probability[:, 71] = 0
    assert len(lines_of(probability, PLAIN, threshold=0.5)[1]) == 2
    assert len(lines_of(probability, DbnetSettings(0.3, 0.0, True), threshold=0.5)[1]) == 1


def test_a_line_at_the_border_may_reach_beyond_it():
    settings = DbnetSettings(binarize=0.3, unclip=1.5, dilate=False)
    (corners,), scores = lines_of(drawn(((20, 10), (60, 30), 0, 255)), settings, threshold=0.5)
    assert corners[:, 0].min() < 0
    assert scores[0] == pytest.approx(1.0)
