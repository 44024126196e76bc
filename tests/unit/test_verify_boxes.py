"""Which detections match, by hand and one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tricade_build.verify.boxes import Found, matches, overlaps

CAR, BUS = 0, 1
HERE, BESIDE, FAR = (0, 0, 10, 10), (0, 0, 10, 8), (50, 50, 60, 60)  # IoU of the first two: 0.8


def found(*rows: tuple[tuple[float, ...], float, int]) -> Found:
    boxes, scores, classes = zip(*rows, strict=True) if rows else ((), (), ())
    return Found(np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32), np.array(classes, np.int32))


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ([], [], []),
        ([(HERE, 0.9, CAR)], [], []),
        ([], [(HERE, 0.9, CAR)], [-1]),
        ([(HERE, 0.9, CAR)], [(HERE, 0.4, CAR)], [0]),
        ([(HERE, 0.9, CAR)], [(HERE, 0.9, BUS)], [-1]),
        ([(HERE, 0.9, CAR)], [(FAR, 0.9, CAR)], [-1]),
        # half of it, exactly
        ([(HERE, 0.9, CAR)], [((0, 0, 10, 5), 0.9, CAR)], [0]),
        ([(HERE, 0.9, CAR)], [((0, 0, 10, 4.9), 0.9, CAR)], [-1]),
        # the better one takes it, however well the other fits
        ([(HERE, 0.9, CAR)], [(HERE, 0.6, CAR), (BESIDE, 0.7, CAR)], [-1, 0]),
        # the one that fits best
        ([(HERE, 0.5, CAR), (BESIDE, 0.9, CAR)], [(HERE, 0.9, CAR)], [0]),
        # what is taken leaves the next best
        ([(HERE, 0.5, CAR), (BESIDE, 0.9, CAR)], [(HERE, 0.9, CAR), (HERE, 0.8, CAR)], [0, 1]),
        # what does not count (score below 0.25) comes last
        ([(HERE, 0.2, CAR), (BESIDE, 0.9, CAR)], [(HERE, 0.9, CAR), (HERE, 0.8, CAR)], [1, 0]),
    ],
)
def test_table(reference, candidate, expected):
    known = found(*reference)
    assert matches(known, found(*candidate), counts=known.scores >= 0.25).tolist() == expected


@pytest.mark.parametrize(
    ("one", "other", "iou"),
    [
        (HERE, HERE, 1.0),
        (HERE, BESIDE, 0.8),
        (HERE, FAR, 0.0),
        (HERE, (5, 0, 15, 10), 1 / 3),
        (HERE, (10, 0, 20, 10), 0.0),
        ((3, 3, 3, 3), (3, 3, 3, 3), 0.0),
    ],
)
def test_overlap(one, other, iou):
    assert overlaps(np.array([one], np.float32), np.array([other], np.float32))[0, 0] == pytest.approx(iou)


sides = st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 12), st.integers(1, 12), st.integers(0, 1))


@given(st.lists(sides, max_size=8), st.lists(sides, max_size=8))
def test_against_one_pair_at_a_time(reference, candidate):
    known = found(*(((x, y, x + w, y + h), 0.1 + 0.1 * row, c) for row, (x, y, w, h, c) in enumerate(reference)))
    seen = found(*(((x, y, x + w, y + h), 0.9 - 0.1 * row, c) for row, (x, y, w, h, c) in enumerate(candidate)))

    chosen = matches(known, seen, counts=np.ones(len(known), bool)).tolist()

    free = set(range(len(reference)))
    for row, match in enumerate(chosen):  # scores fall
        fits = {at: iou(reference[at], candidate[row]) for at in free if reference[at][4] == candidate[row][4]}
        best = max(fits.values(), default=0.0)
        assert (match >= 0) == (best >= 0.5)
        if match >= 0:
            assert fits[match] == best
            free.remove(match)


def iou(one, other) -> float:
    """In whole pixels, counted."""
    pixels = [{(x, y) for x in range(b[0], b[0] + b[2]) for y in range(b[1], b[1] + b[3])} for b in (one, other)]
    return len(pixels[0] & pixels[1]) / len(pixels[0] | pixels[1])


def test_the_best_are_named():
    cars = found((HERE, 0.3, CAR), (FAR, 0.914, BUS), (BESIDE, 0.5, 7), (HERE, 0.4, CAR), (HERE, 0.2, CAR))

    assert cars.text(np.ones(5, bool), ["car", "bus"]) == (
        "bus 0.91 at 50, 50, 60, 60; class 7 0.50 at 0, 0, 10, 8; car 0.40 at 0, 0, 10, 10; 2 more"
    )
    assert cars.text(np.zeros(5, bool), ["car", "bus"]) == "none"
