"""Errors of tensors against numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tricade_build.verify.deviation import BLOCK, EDGES, PER_DECADE, Deviations, histogram_of
from tricade_build.verify.verification import Deviation

INF, NAN = np.inf, np.nan


def deviation(reference, candidate, name: str = "output0", dtype=np.float32) -> Deviation:
    found = Deviations()
    found.add({name: np.array(reference, dtype)}, {name: np.array(candidate, dtype)})
    return found.by_tensor[name]


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ([], [], (0.0, 0.0, 0, 0)),
        ([[1, 2]], [[1, 2]], (0.0, 0.0, 2, 0)),
        ([1, 2, 3, 4], [1.5, 2, 3, 2], (2.0, 0.625, 4, 0)),
        ([1, 2, 3], [NAN, 2.5, INF], (0.5, 0.5, 1, 2)),
        ([-INF, NAN, 3], [-INF, 1, -INF], (0.0, 0.0, 0, 1)),
    ],
)
def test_table(reference, candidate, expected):
    assert deviation(reference, candidate) == Deviation(*expected)


def test_bytes_do_not_wrap_around():
    assert deviation([[0, 255]], [[3, 254]], "MAP", np.uint8) == Deviation(3.0, 2.0, 2, 0)


def test_half_does_not_overflow():
    assert deviation([60000], [-60000], dtype=np.float16).max_error == 120000


def test_rows_that_may_come_in_another_order_are_not_compared():
    candidates = np.array([[[0, 0, 9, 9, 0.9, 0], [5, 5, 9, 9, 0.8, 0]]], np.float32)
    other = candidates[:, ::-1].copy()
    other[0, 0, 4] = NAN
    found = Deviations()

    not_finite = found.add(
        {"CANDIDATES": candidates, "INDEX": np.zeros((1, 1), np.int32)},
        {"CANDIDATES": other, "INDEX": np.ones((1, 1), np.int32)},
    )

    assert not_finite == {"CANDIDATES": 1}
    assert found.by_tensor == {"CANDIDATES": Deviation(0.0, 0.0, 0, 1)}
    assert found.histograms == {}


def test_another_number_of_rows_is_not_compared():
    assert deviation(np.zeros((3, 7)), np.ones((2, 7))) == Deviation(0.0, 0.0, 0, 0)


def test_samples_add_up():
    found = Deviations()
    for reference, candidate in [([0, 0], [1, 0]), ([0], [4]), ([0], [NAN])]:
        found.add({"x": np.array(reference, float), "only": np.zeros(1)}, {"x": np.array(candidate, float)})

    assert found.by_tensor == {"x": Deviation(4.0, 5 / 3, 3, 1)}
    assert found.histograms["x"].sum() == 3


@pytest.mark.parametrize(
    ("errors", "bins"),
    [
        ([], {}),
        ([0, 0], {0: 2}),
        ([1e-12, 1e-8], {1: 2}),
        ([1.01], {1 + 8 * PER_DECADE: 1}),
        ([1e9], {len(EDGES) - 1: 1}),
    ],
)
def test_histogram(errors, bins):
    counts = histogram_of(np.array(errors, np.float64))

    assert {int(place): int(counts[place]) for place in np.flatnonzero(counts)} == bins


def test_histogram_agrees_with_numpy():
    errors = 10 ** np.random.default_rng(0).uniform(-7.9, 3.9, 5000)

    np.testing.assert_array_equal(histogram_of(errors)[1:], np.histogram(errors, EDGES)[0])


def test_more_values_than_are_taken_at_a_time():
    reference = np.zeros((3, BLOCK - 1), np.float32)
    candidate = reference.copy()
    candidate[0, 0], candidate[1, 1], candidate[2, -1], candidate[2, -2] = 1, -2, 4, NAN

    assert deviation(reference, candidate) == Deviation(4.0, 7 / (reference.size - 1), reference.size - 1, 1)
