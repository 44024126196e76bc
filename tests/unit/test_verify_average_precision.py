"""Average precision by hand and by its definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tricade_build.verify.average_precision import average_precision


@pytest.mark.parametrize(
    ("scores", "hits", "expected", "precision"),
    [
        ([], [], 0, 0.0),
        ([], [], 3, 0.0),
        ([0.9], [False], 0, 0.0),
        ([0.9], [True], 1, 1.0),
        ([0.9], [False], 1, 0.0),
        # recall of 0 to 0.5: 51 of 101 points
        ([0.9], [True], 2, 51 / 101),
        # a false one below all that is right costs nothing
        ([0.9, 0.1], [True, False], 1, 1.0),
        ([0.9, 0.1], [False, True], 1, 0.5),
        # precision 1 up to a third (34 points), 2/3 up to two thirds (33), then none
        ([0.9, 0.8, 0.7], [True, False, True], 3, (34 + 33 * 2 / 3) / 101),
        # in any order
        ([0.7, 0.9, 0.8], [True, True, False], 3, (34 + 33 * 2 / 3) / 101),
        # 57 of 100 reach a recall of 0.57, which they do not in floating point: 58 points
        ([0.5] * 57, [True] * 57, 100, 58 / 101),
    ],
)
def test_table(scores, hits, expected, precision):
    found = average_precision(np.array(scores, np.float32), np.array(hits, bool), expected=expected)
    assert found == pytest.approx(precision)


@given(st.lists(st.booleans(), max_size=30), st.integers(0, 20))
def test_against_its_definition(hits, missed):
    expected = sum(hits) + missed
    if not expected:
        return
    ranks = [(Fraction(sum(hits[:n]), expected), Fraction(sum(hits[:n]), n)) for n in range(1, len(hits) + 1)]
    points = [max((p for r, p in ranks if r >= Fraction(at, 100)), default=Fraction()) for at in range(101)]

    scores = np.linspace(1, 0, len(hits), dtype=np.float32)
    found = average_precision(scores, np.array(hits, bool), expected=expected)

    assert found == pytest.approx(float(sum(points) / 101))
