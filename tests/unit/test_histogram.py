"""`tricade_build.histogram`: counting magnitudes, and where each method lets int8 end."""

from __future__ import annotations

import contextlib
import io
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from onnxruntime.quantization.calibrate import HistogramCollector

from tricade_build.histogram import BINS, METHODS, Histogram, entropy, minmax, percentile


def counted(*parts: NDArray[np.float32]) -> Histogram:
    histogram = Histogram()
    for part in parts:
        histogram.add(part)
    return histogram


def normal(count: int, *, scale: float = 1.0, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0, scale, count).astype(np.float32)


def test_nothing_counted_is_nothing_held() -> None:
    for part in ([], [np.zeros(0, np.float32)], [np.zeros((2, 3), np.float32)]):
        assert [method(counted(*part)) for method in METHODS.values()] == [0, 0, 0]


def test_counts_as_numpy_does() -> None:
    values = normal(10_000, scale=3)
    histogram = counted(values.reshape(10, 20, 50))
    top = float(np.abs(values).max())
    span = 2.0 ** math.ceil(math.log2(top))
    expected, _ = np.histogram(np.abs(values), BINS, range=(0, span))
    np.testing.assert_array_equal(histogram.counts, expected)
    assert histogram.top == top
    assert histogram.width == span / BINS


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_what_comes_is_all_one(order: int) -> None:
    parts = [normal(1000, scale=scale, seed=seed) for seed, scale in enumerate((0.001, 5, 0.3, 700, 1e-30))]
    one, all_at_once = counted(*parts[::order]), counted(np.concatenate(parts))
    np.testing.assert_array_equal(one.counts, all_at_once.counts)
    assert (one.top, one.width) == (all_at_once.top, all_at_once.width)
    assert [method(one) for method in METHODS.values()] == [method(all_at_once) for method in METHODS.values()]


def test_minmax_is_the_largest_magnitude() -> None:
    assert minmax(counted(np.array([1, -7.25, 3], np.float32), np.array([7], np.float32))) == 7.25


def test_percentile_leaves_out_one_in_ten_thousand() -> None:
    """0.5 everywhere but for 10 of 99 990 + 10, which is one in ten thousand, then for 11."""
    common, rare = np.full(99_990, 0.5, np.float32), np.full(10, 100.0, np.float32)
    assert percentile(counted(common, rare)) == 128 / BINS * (math.floor(0.5 / 128 * BINS) + 1)
    assert percentile(counted(common[1:], rare, rare[:1])) == 100


def test_no_method_holds_more_than_there_was() -> None:
    for values in (normal(1000), np.array([1e-3], np.float32), np.full(5, 3.0, np.float32)):
        histogram = counted(values)
        assert all(0 < method(histogram) <= histogram.top for method in METHODS.values())


def test_entropy_holds_all_of_an_even_spread() -> None:
    values = np.linspace(-8, 8, 400_001, dtype=np.float32)
    assert entropy(counted(values)) == pytest.approx(8, rel=0.01)


def test_entropy_cuts_what_is_rare_and_far() -> None:
    values = np.concatenate([normal(1_000_000), np.array([60.0], np.float32)])
    assert 3 < entropy(counted(values)) < 6


def test_entropy_heeds_no_zeros() -> None:
    values = np.abs(normal(100_000))
    many = np.concatenate([values, np.zeros(1_000_000, np.float32)])
    assert entropy(counted(many)) == entropy(counted(values))


@pytest.mark.parametrize(
    "values", [normal(500_000), np.random.default_rng(1).laplace(0, 1, 500_000).astype(np.float32)]
)
def test_entropy_agrees_with_onnx_runtimes_collector(values: NDArray[np.float32]) -> None:
    """Near it: it has 255 levels on both sides of 0 where ours has 128 on one, and edges that its data give it."""
    collector = HistogramCollector("entropy", False, 4095, 255, 99.99, "same")
    with contextlib.redirect_stdout(io.StringIO()):
        collector.collect({"x": [values]})
        low, high, *_ = collector.compute_collection_result()["x"]
    assert entropy(counted(values)) == pytest.approx(max(-low, high), rel=0.25)
