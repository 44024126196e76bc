"""Best path decoding by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tricade.ctc import text_of

ALPHABET = ("", "a", "b", " ", "品")


@pytest.mark.parametrize(
    ("index", "score", "expected"),
    [
        ([], [], ("", 0.0)),
        ([0, 0, 0], [0.9, 0.9, 0.9], ("", 0.0)),
        ([1], [0.5], ("a", 0.5)),
        ([1, 1, 1], [0.5, 0.9, 0.9], ("a", 0.5)),
        ([1, 0, 1], [0.5, 0.9, 1.0], ("aa", 0.75)),
        ([0, 1, 2, 2, 0, 3, 4, 0], [1, 0.2, 0.4, 1, 1, 0.6, 0.8, 1], ("ab 品", 0.5)),
    ],
)
def test_table(index, score, expected):
    text, mean = text_of(np.array(index, np.int32), np.array(score, np.float32), ALPHABET)
    assert text == expected[0]
    assert mean == pytest.approx(expected[1])
