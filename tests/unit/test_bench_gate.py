"""What the gate calls broken, and what it takes for noise."""

from __future__ import annotations

import pytest

from bench.gate import LIMITS, Limit, problems
from bench.growth import against_line
from bench.load import Round
from bench.measure import Cell, Load
from bench.workloads import Workload

P50 = Limit("w", 1, "other", least_p50=0.8)
RATE = Limit("w", 8, "other", most_rate=1.25)


def cell(callers: int, ours: list[tuple[float, float]], others: list[tuple[float, float]]) -> Cell:
    """Rounds of one call each: its latency in ms and the rate."""
    rounds = {
        name: [Round((ms,), (), rate, 0) for ms, rate in some] for name, some in (("tricade", ours), ("other", others))
    }
    return Cell(Workload("w", "squares", "", (b"",)), Load(callers=callers), rounds)


OURS = [(10.0, 100.0)] * 7


@pytest.mark.parametrize(
    ("others_ms", "said"),
    [
        ([12.0] * 7, []),
        ([7.0] * 7, ["w, callers 1, other: p50 ÷ ≥ 0.8: found 0.70, in 0.70 to 0.70"]),
        ([7.0] * 4 + [9.0] * 3, []),  # the interval reaches into what is allowed
    ],
)
def test_a_p50_that_is_too_low_beside_ours(others_ms, said) -> None:
    assert list(problems([cell(1, OURS, [(ms, 100.0) for ms in others_ms])], [P50])) == said


@pytest.mark.parametrize(
    ("rates", "count"), [([100.0] * 7, 0), ([140.0] * 7, 1), ([140.0] * 4 + [110.0] * 3, 0), ([125.0] * 7, 0)]
)
def test_a_rate_that_is_too_high_beside_ours(rates, count) -> None:
    found = list(problems([cell(8, OURS, [(10.0, rate) for rate in rates])], [RATE]))
    assert len(found) == count
    assert all("calls/s ÷ ≤ 1.25: found 1.40, in 1.40 to 1.40" in each for each in found)


def test_what_was_not_measured_is_no_success() -> None:
    assert list(problems([], [P50])) == ["w, callers 1, other: p50 ÷ ≥ 0.8: not measured"]
    assert list(problems([cell(1, OURS, OURS)], [RATE])) == ["w, callers 8, other: calls/s ÷ ≤ 1.25: not measured"]


def test_every_limit_is_one_limit() -> None:
    assert all((limit.least_p50 is None) != (limit.most_rate is None) for limit in LIMITS)


def test_against_the_straight_line() -> None:
    """From 10 ms for 1 object to 40 ms for 301: 0.1 ms an object."""
    assert against_line({1: 10.0, 101: 20.0, 201: 36.0, 301: 40.0}) == pytest.approx({1: 1, 101: 1, 201: 1.2, 301: 1})
