"""Cutting crops into batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tricade.chunks import CALL_COST, Chunk, chunks_of


def cut(widths: list[int], steps: tuple[int, ...], max_batch: int) -> list[tuple[list[int], int]]:
    chunks = chunks_of(np.array(widths, np.int32), steps, max_batch=max_batch)
    return [(chunk.positions.tolist(), chunk.width) for chunk in chunks]


@pytest.mark.parametrize(
    ("widths", "max_batch", "expected"),
    [
        ([], 4, []),
        ([100], 4, [([0], 100)]),
        ([100] * 4, 4, [([0, 1, 2, 3], 100)]),
        ([100] * 5, 4, [([0, 1, 2, 3], 100), ([4], 100)]),
        ([100] * 20, 4, [([4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3], 100) for i in range(5)]),
    ],
)
def test_one_width(widths, max_batch, expected):
    assert cut(widths, (100,), max_batch) == expected


@pytest.mark.parametrize(
    ("widths", "expected"),
    [
        ([300, 320], [([0, 1], 320)]),
        ([320, 2000], [([1], 2304), ([0], 320)]),
        # four short lines and a long one: the long one goes alone
        ([300, 310, 2000, 300, 20], [([2], 2304), ([0, 1, 3, 4], 320)]),
        ([330, 640, 650], [([2], 1280), ([0, 1], 640)]),
    ],
)
def test_widths_go_to_the_smallest_step_that_holds_them(widths, expected):
    chunks = cut(widths, (320, 640, 1280, 2304), 16)
    assert sorted(chunks) == sorted(expected)


def test_a_small_difference_is_cheaper_than_another_call():
    assert cut([100, 100 + CALL_COST // 2], (100, 100 + CALL_COST // 2), 16) == [([0, 1], 100 + CALL_COST // 2)]


def test_the_costliest_chunk_comes_first():
    chunks = cut([320] * 3 + [2304], (320, 2304), 16)
    assert chunks == [([3], 2304), ([0, 1, 2], 320)]


def cheapest(padded: list[int], max_batch: int) -> int:
    """By trying all cuts of the sorted crops."""
    if not padded:
        return 0
    return min(
        size * padded[size - 1] + CALL_COST + cheapest(padded[size:], max_batch)
        for size in range(1, min(max_batch, len(padded)) + 1)
    )


@given(st.lists(st.integers(1, 300), max_size=9), st.integers(1, 5))
def test_nothing_is_lost_and_nothing_is_cheaper(widths, max_batch):
    steps = (50, 80, 100, 200, 300)
    chunks = chunks_of(np.array(widths, np.int32), steps, max_batch=max_batch)
    assert sorted(position for chunk in chunks for position in chunk.positions) == list(range(len(widths)))
    assert all(len(chunk.positions) <= max_batch for chunk in chunks)
    assert all(widths[position] <= chunk.width for chunk in chunks for position in chunk.positions)
    padded = sorted(min(step for step in steps if step >= width) for width in widths)
    if len(set(padded)) > 1:
        assert sum(chunk.cost + CALL_COST for chunk in chunks) == cheapest(padded, max_batch)


def test_cost_counts_columns():
    assert Chunk(np.arange(3), 320).cost == 960
