"""Suppression against a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tricade.nms import suppress


def kept(rows: list[tuple[float, float, float, float, float, int]], iou: float = 0.5) -> list[int]:
    table = np.array(rows, np.float32).reshape(-1, 6)
    return suppress(table[:, :4], table[:, 4], table[:, 5].astype(np.int32), iou_threshold=iou).tolist()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], []),
        ([(0, 0, 10, 10, 0.9, 0)], [0]),
        ([(0, 0, 10, 10, 0.5, 0), (0, 0, 10, 10, 0.9, 0)], [1]),
        ([(0, 0, 10, 10, 0.5, 0), (0, 0, 10, 10, 0.9, 1)], [1, 0]),
        # overlap 50 of 150: 1/3
        ([(0, 0, 10, 10, 0.9, 0), (5, 0, 15, 10, 0.8, 0)], [0, 1]),
        # overlap 90 of 110: 0.82
        ([(0, 0, 10, 10, 0.8, 0), (1, 0, 11, 10, 0.9, 0)], [1]),
        # the middle one suppresses both neighbours although they would not suppress each other
        ([(0, 0, 10, 10, 0.7, 0), (3, 0, 13, 10, 0.9, 0), (6, 0, 16, 10, 0.8, 0)], [1]),
        # one that is suppressed does not suppress
        ([(0, 0, 10, 10, 0.9, 0), (3, 0, 13, 10, 0.8, 0), (6, 0, 16, 10, 0.7, 0)], [0, 2]),
    ],
)
def test_table(rows, expected):
    assert kept(rows) == expected


def reference(table: np.ndarray, iou: float) -> list[int]:
    """Greedy NMS, one pair at a time."""
    chosen: list[int] = []
    for one in sorted(range(len(table)), key=lambda row: -table[row, 4]):
        if all(table[one, 5] != table[other, 5] or overlap(table[one], table[other]) <= iou for other in chosen):
            chosen.append(one)
    return chosen


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    width = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    both = width * height
    return both / ((one[2] - one[0]) * (one[3] - one[1]) + (other[2] - other[0]) * (other[3] - other[1]) - both)


corners = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 20), st.integers(1, 20), st.integers(0, 1))


@given(st.lists(corners, max_size=25), st.sampled_from([0.31, 0.52, 0.73]))
def test_against_the_reference(rows, iou):
    scores = np.linspace(0.9, 0.1, len(rows))
    table = np.array(
        [(x, y, x + w, y + h, s, c) for (x, y, w, h, c), s in zip(rows, scores, strict=True)], np.float64
    ).reshape(-1, 6)
    assert kept([tuple(row) for row in table], iou) == reference(table, iou)
