"""Percentiles with calls that failed or never started, and a round that ends although nothing is answered."""

from __future__ import annotations

import math
import time

import pytest

from tricade_tune.load import Round, arrivals, open_loop
from tricade_tune.trials import Load


def met(answered: int, *, errors: int = 0, unstarted: int = 0) -> Round:
    """Latencies of 1, 2, 3, … ms, slowest first."""
    latency_ms = tuple(float(each) for each in range(answered, 0, -1))
    return Round(latency_ms, ("no",) * errors, 1.0, unstarted=unstarted)


@pytest.mark.parametrize(
    ("found", "p99_ms"),
    [
        (met(1), 1),
        (met(50), 50),
        (met(100), 99),
        (met(1000), 990),
        (met(99, errors=1), 99),
        (met(99, unstarted=1), 99),
        (met(198, errors=1, unstarted=1), 198),
        (met(98, errors=1, unstarted=1), math.inf),
        (met(197, errors=3), math.inf),
        (met(10, unstarted=1), math.inf),
        (met(0, errors=5), math.inf),
    ],
)
def test_a_call_without_an_answer_keeps_to_no_latency(found, p99_ms):
    assert found.percentile_ms(99) == p99_ms


def test_all_calls_count():
    assert met(3, errors=2, unstarted=4).calls == 9


def test_arrivals_that_cannot_start_give_up_and_the_round_ends():
    """One call of half a second at a time: of 50 arrivals within half a second only a few can start in time."""
    begin = time.perf_counter()

    found = open_loop([b""], rate=100, seconds=0.5, seed=0, in_flight=1, patience_s=0.2)(lambda _: time.sleep(0.5))

    assert time.perf_counter() - begin < 3
    assert found.calls == len(arrivals(100, seconds=0.5, seed=0))
    assert 1 <= len(found.latency_ms) <= 3
    assert found.percentile_ms(99) == math.inf


def test_a_caller_has_as_many_under_way_as_the_target_lets_be():
    def load(rate: float, target_ms: float) -> Load:
        return Load(lambda length: [b""] * length, rate, 1.0, target_ms)

    assert load(10, 100).in_flight == 64
    assert load(1000, 100).in_flight == 200
    assert load(10_000, 1000).in_flight == 512
    assert (load(1, 100).patience_s(2.0), load(1, 1000).patience_s(2.0)) == (2.0, 4.0)
