"""Classifiers compared, head by head, by hand."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tricade_build.heads import HEADS
from tricade_build.verify import ClassifierComparison, Verification, Worst
from tricade_build.verify.answers import KINDS
from tricade_build.verify.answers.ctc import edits
from tricade_build.verify.answers.embedding import cosine

NAMES = ("car", "bus", "van")
ALPHABET = ("", "a", "b", "c")
Rows = list[list[tuple[int, float]]]  # of each crop: index and score


def outputs(rows: Rows) -> dict[str, np.ndarray]:
    table = np.array(rows, np.float32).reshape(len(rows), -1 if rows else 1, 2)
    return {"INDEX": table[..., 0].astype(np.int32), "SCORE": table[..., 1]}


def compared(head: str, reference: Rows, candidate: Rows, *, threshold: float = 0.0) -> Verification:
    comparison = ClassifierComparison(head=head, names=ALPHABET if head == "ctc" else NAMES, threshold=threshold)
    comparison.add("a.jpg", outputs(reference), outputs(candidate))
    return comparison.done(max_drop=0.01)[0]


def texts(*lines: str) -> Rows:
    """A step for each character and a blank after it."""
    width = max(map(len, lines), default=0)
    steps = [[ALPHABET.index(character) for character in line] + [0] * (width - len(line)) for line in lines]
    return [[pair for step in line for pair in ((step, 0.5), (0, 1.0))] for line in steps]


def test_every_head_is_compared():
    assert KINDS.keys() == HEADS.keys()


@pytest.mark.parametrize(
    ("reference", "candidate", "agreement"),
    [
        ([], [], 1.0),
        ([[(0, 0.9)]], [[(0, 0.2)]], 1.0),
        ([[(0, 0.9)]], [[(1, 0.9)]], 0.0),
        # what comes second does not matter
        ([[(0, 0.9), (1, 0.1)]], [[(0, 0.9), (2, 0.1)]], 1.0),
        ([[(0, 0.9)], [(1, 0.9)], [(2, 0.9)], [(0, 0.9)]], [[(0, 0.9)], [(1, 0.9)], [(2, 0.9)], [(2, 0.6)]], 0.75),
    ],
)
def test_softmax(reference, candidate, agreement):
    verification = compared("softmax", reference, candidate)

    assert verification.agreement == agreement
    assert verification.samples == len(reference)
    assert verification.details == {"equal": agreement if reference else 0.0}


def test_softmax_names_both_answers():
    verification = compared("softmax", [[(0, 0.9)], [(1, 0.6)]], [[(0, 0.9)], [(7, 0.55)]])

    assert verification.worst == (Worst("a.jpg", "another class", "bus 0.60", "class 7 0.55"),)


@pytest.mark.parametrize(
    ("reference", "candidate", "agreement"),
    [
        ([], [], 1.0),
        # the same two, in another order
        ([[(0, 0.9), (1, 0.8)]], [[(1, 0.9), (0, 0.7)]], 1.0),
        # the second is below the threshold in both
        ([[(0, 0.9), (1, 0.4)]], [[(0, 0.9), (2, 0.3)]], 1.0),
        ([[(0, 0.9), (1, 0.4)]], [[(0, 0.9), (1, 0.6)]], 0.0),
        ([[(0, 0.4), (1, 0.1)], [(0, 0.5), (1, 0.1)]], [[(1, 0.4), (0, 0.1)], [(0, 0.4), (1, 0.1)]], 0.5),
    ],
)
def test_sigmoid(reference, candidate, agreement):
    assert compared("sigmoid", reference, candidate, threshold=0.5).agreement == agreement


def test_sigmoid_names_both_answers():
    verification = compared("sigmoid", [[(0, 0.9), (2, 0.6)]], [[(0, 0.4), (2, 0.3)]], threshold=0.5)

    assert verification.worst == (Worst("a.jpg", "other classes", "car 0.90, van 0.60", "none"),)


@pytest.mark.parametrize(
    ("reference", "candidate", "agreement", "equal"),
    [
        ([], [], 1.0, 0.0),
        ([""], [""], 1.0, 1.0),
        (["abc"], ["abc"], 1.0, 1.0),
        (["abc"], ["abb"], 2 / 3, 0.0),
        (["a"], ["bcabc"], 0.0, 0.0),
        ([""], ["a"], 0.0, 0.0),
        # one edit of eight characters: longer texts count more
        (["abcabc", "ab"], ["abcabc", "b"], 7 / 8, 0.5),
    ],
)
def test_ctc(reference, candidate, agreement, equal):
    verification = compared("ctc", texts(*reference), texts(*candidate))

    assert verification.agreement == pytest.approx(agreement)
    assert verification.details == {"equal": equal}


def test_ctc_names_both_answers():
    assert compared("ctc", texts("abc"), texts("ab")).worst == (Worst("a.jpg", "1 of 3 characters", '"abc"', '"ab"'),)


@given(st.text("ab", max_size=6), st.text("ab", max_size=6))
def test_edits_against_the_recursion(one, other):
    @cache
    def fewest(n: int, m: int) -> int:
        if not n or not m:
            return n + m
        return min(fewest(n - 1, m) + 1, fewest(n, m - 1) + 1, fewest(n - 1, m - 1) + (one[n - 1] != other[m - 1]))

    assert edits(one, other) == fewest(len(one), len(other))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([], [], 1.0),
        ([3, 4], [30, 40], 1.0),
        ([1, 0], [0, 2], 0.0),
        ([1, 0], [1, 1], 0.5**0.5),
        ([1, 0], [-1, 0], 0.0),
        ([0, 0], [0, 0], 1.0),
        ([0, 0], [1, 0], 0.0),
        ([1, 0], [np.nan, 0], 0.0),
        ([1, 0], [np.inf, 0], 0.0),
    ],
)
def test_cosine(one, other, expected):
    assert cosine(np.array(one, np.float32), np.array(other, np.float32)) == pytest.approx(expected)


def test_embedding():
    comparison = ClassifierComparison(head="embedding")
    reference = {"EMBEDDING": np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]], np.float32)}
    comparison.add("a.jpg", reference, {"EMBEDDING": np.array([[1, 0, 0, 0, 0], [0, 3, 4, 0, 0]], np.float32)})

    verification, plots = comparison.done(max_drop=0.2)

    assert verification.agreement == pytest.approx(0.8)  # of 1 and 0.6
    assert verification.details == pytest.approx({"lowest": 0.6})
    assert verification.errors["EMBEDDING"].max_error == 4
    assert verification.passed
    assert verification.worst == (
        Worst("a.jpg", "cosine similarity 0.6000", "0.000, 1.000, 0.000, 0.000, …", "0.000, 3.000, 4.000, 0.000, …"),
    )
    assert plots.scores.shape == (0, 2)


def test_crops_of_a_picture_are_one_in_the_plot():
    comparison = ClassifierComparison(head="softmax", names=NAMES)
    for picture, index in [("a.jpg", 0), ("b.jpg", 0), ("a.jpg", 1), ("c.jpg", 2)]:
        comparison.add(picture, outputs([[(index, 0.75)]]), outputs([[(0, 0.5)]]))

    verification, plots = comparison.done(max_drop=0.01)

    assert plots.agreements.tolist() == [0.0, 0.5, 1.0]
    np.testing.assert_array_equal(plots.scores, [[0.75, 0.5]] * 4)
    assert [worst.picture for worst in verification.worst] == ["a.jpg", "c.jpg"]
    assert verification.errors["SCORE"].mean_error == 0.25
    assert "INDEX" not in verification.errors
