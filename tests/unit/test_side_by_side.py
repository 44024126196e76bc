"""Rows of a batch computed side by side: which rows together, by which way, and that they come back in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from tricade import side_by_side
from tricade.side_by_side import SideBySide


class Runs:
    """Twice IN, and the row's number squared; what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.gate: threading.Barrier | None = None

    def __call__(self, inputs):
        rows = inputs["IN"]
        self.asked.append(rows[:, 0].tolist())
        if self.gate:
            self.gate.wait(timeout=10)  # breaks unless so many are under way at once
        return [2 * rows, rows[:, 0] ** 2]


@pytest.fixture
def heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "WORTH_S", 0.0)


@pytest.fixture
def pair() -> Iterator[tuple[SideBySide, Runs, Runs]]:
    shared, alone = Runs(), Runs()
    network = SideBySide(shared, alone, threads=3)
    network({"IN": np.zeros((1, 2))})  # from which it knows what a row takes
    shared.asked.clear()
    yield network, shared, alone
    network.close()


@pytest.mark.parametrize(
    ("rows", "alone_ran", "shared_ran"),
    [
        (1, [], [[0]]),
        (2, [], [[0], [1]]),
        (3, [[0], [1], [2]], []),
        (7, [[0, 1], [2, 3], [4, 5]], [[6]]),
        (8, [[0, 1], [2, 3], [4, 5]], [[6], [7]]),
    ],
)
@pytest.mark.usefixtures("heavy")
def test_all_threads_have_as_many_rows_and_share_what_is_left(pair, rows, alone_ran, shared_ran):
    network, shared, alone = pair
    given = np.stack([np.arange(rows, dtype=float), np.full(rows, 0.5)], axis=1)

    twice, squares = network({"IN": given})

    assert sorted(alone.asked) == alone_ran
    assert sorted(shared.asked) == shared_ran
    np.testing.assert_array_equal(twice, 2 * given)
    np.testing.assert_array_equal(squares, np.arange(rows) ** 2)


@pytest.mark.usefixtures("heavy")
def test_parts_are_under_way_at_the_same_time(pair):
    network, shared, alone = pair
    alone.gate, shared.gate = threading.Barrier(3), threading.Barrier(2)
    network({"IN": np.zeros((5, 2))})
    assert (len(alone.asked), len(shared.asked)) == (3, 2)


def test_a_batch_that_takes_little_stays_together(pair):
    network, shared, alone = pair
    network({"IN": np.zeros((8, 2))})
    assert (len(shared.asked), len(alone.asked)) == (1, 0)


def test_a_slow_first_run_says_nothing_about_later_ones(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(side_by_side.time, "perf_counter", lambda: now[0])
    takes_s = iter([5.0, 0.001, 0.001, 0.001])

    def shared(inputs):
        now[0] += next(takes_s)
        return [inputs["IN"]]

    network = SideBySide(shared, shared, threads=2)
    for _ in range(3):
        network({"IN": np.zeros((1, 4))})
    asked = []
    network._alone = asked.append
    network({"IN": np.zeros((2, 4))})  # 2 ms by what was seen last
    assert asked == []


@pytest.mark.usefixtures("heavy")
def test_an_error_of_one_part_is_the_batch_s(pair):
    network, _, _ = pair

    def fails(inputs):
        raise ValueError(f"row {inputs['IN'][0, 0]:g}")

    network._alone = fails
    with pytest.raises(ValueError, match="row 0"):
        network({"IN": np.arange(6.0).reshape(3, 2)})
