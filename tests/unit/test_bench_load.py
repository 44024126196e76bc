"""Load on a fake whose service times are known: what the generator says must follow from them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bench.load import Round, Timed, arrivals, closed_loop, closed_round, in_turns, open_loop, open_round
from bench.measure import Load

PICTURES = (b"a", b"b", b"c")
SERVICE_S = 0.010


class OneAtATime:
    """Answers in order of arrival, each call after 10 ms of its own; call number `slow` takes a second.

    It knows what really happened: a machine with other work sleeps longer than it is told, never shorter.
    """

    def __init__(self, *, slow: int = 0) -> None:
        self.ends_s: list[float] = []
        self.pictures: list[bytes] = []
        self._slow = slow
        self._worker = ThreadPoolExecutor(1)

    def __call__(self, picture: bytes) -> None:
        self._worker.submit(self._serve, picture).result()

    def _serve(self, picture: bytes) -> None:
        self.pictures.append(picture)
        time.sleep(1.0 if len(self.pictures) == self._slow else SERVICE_S)
        self.ends_s.append(time.perf_counter())

    @property
    def took_ms(self) -> np.ndarray:
        """Between one end and the next."""
        return 1e3 * np.diff(self.ends_s)


@pytest.mark.parametrize("callers", [1, 4])
def test_a_closed_loop_asks_as_fast_as_it_is_answered(callers: int) -> None:
    service = OneAtATime()

    found = closed_loop(PICTURES, callers=callers, seconds=1.0)(service)

    assert found.errors == ()
    assert 10 * callers <= np.median(found.latency_ms)  # each caller waits for all others
    assert np.mean(found.latency_ms) == pytest.approx(callers * service.took_ms.mean(), rel=0.1)
    assert found.rate <= 100
    assert found.rate == pytest.approx(1e3 / service.took_ms.mean(), rel=0.1)


def test_a_closed_loop_calls_twice_at_least_and_counts_the_second() -> None:
    service = OneAtATime()

    found = closed_loop(PICTURES, callers=3, seconds=0.001)(service)

    assert len(service.pictures) == 6
    assert len(found.latency_ms) == 3


def test_pictures_are_sent_in_turn() -> None:
    service = OneAtATime()

    closed_loop(PICTURES, callers=1, seconds=0.1)(service)

    assert service.pictures[:5] == [b"a", b"b", b"c", b"a", b"b"]


@pytest.mark.parametrize("slow", [0, 50])
def test_an_open_latency_is_from_the_intended_start_to_the_end(slow: int) -> None:
    service, moments = OneAtATime(slow=slow), arrivals(50, seconds=3.0, seed=1)
    begin = time.perf_counter()

    found = open_loop(PICTURES, rate=50, seconds=3.0, seed=1)(service)

    # In order of arrival; the loop began a moment after `begin`, and hears of an end a moment later.
    true_ms = 1e3 * (np.array(service.ends_s) - begin - np.array(moments))
    assert np.median(np.abs(np.array(found.latency_ms) - true_ms)) < 5
    assert min(found.latency_ms) >= 10
    assert found.rate == pytest.approx(len(moments) / (service.ends_s[-1] - begin), rel=0.1)


def test_an_open_loop_at_half_of_capacity_finds_the_service_time() -> None:
    """Half of the arrivals find it free; M/D/1 waits 5 ms on average. Of three tries the quietest counts."""
    found = [open_loop(PICTURES, rate=50, seconds=1.0, seed=seed)(OneAtATime()) for seed in range(3)]

    assert 10 <= min(np.median(each.latency_ms) for each in found) < 25


def test_a_stall_shows_in_an_open_loop_for_all_who_arrive_meanwhile() -> None:
    """Of 150 arrivals about 50 come during the second, and wait for its end and then for each other."""
    found = open_loop(PICTURES, rate=50, seconds=3.0, seed=1)(OneAtATime(slow=50))

    assert np.percentile(found.latency_ms, 99) > 800
    assert sum(latency > 400 for latency in found.latency_ms) > 20


def test_a_closed_loop_hides_the_same_stall_behind_the_one_who_met_it() -> None:
    found = closed_loop(PICTURES, callers=1, seconds=3.0)(OneAtATime(slow=50))

    assert sum(latency > 900 for latency in found.latency_ms) == 1


def test_waiting_for_a_free_thread_counts() -> None:
    found = open_loop(PICTURES, rate=200, seconds=0.5, seed=1, in_flight=1)(OneAtATime())

    assert max(found.latency_ms) > 200  # 100 arrivals in half a second take a whole one
    assert found.late > 50


def test_errors_are_counted_and_no_latencies() -> None:
    calls = iter(range(1000))

    def every_other(picture: bytes) -> bytes:
        time.sleep(0.001)
        if next(calls) % 2:
            raise ValueError("no")
        return picture

    found = closed_loop(PICTURES, callers=1, seconds=0.1)(every_other)

    assert set(found.errors) == {"ValueError: no"}
    assert abs(len(found.errors) - len(found.latency_ms)) <= 1


def test_a_contestant_that_only_fails_has_no_rate() -> None:
    def broken(picture: bytes) -> bytes:
        time.sleep(0.001)
        raise OSError("gone")

    closed = closed_loop(PICTURES, callers=2, seconds=0.02)(broken)
    opened = open_loop(PICTURES, rate=100, seconds=0.1, seed=0)(broken)

    assert (closed.rate, closed.latency_ms, opened.rate, opened.latency_ms) == (0, (), 0, ())
    assert len(closed.errors) >= 4  # those of the run-up too
    assert len(opened.errors) == len(arrivals(100, seconds=0.1, seed=0))


def test_the_closed_rate_is_of_the_time_in_which_all_are_at_work() -> None:
    """Two callers on a service of one second a call: run-ups end at 1 and 2, then a call a second."""
    first = [Timed(0, 0, 1), Timed(1, 1, 3), Timed(3, 3, 5)]
    second = [Timed(0, 0, 2), Timed(2, 2, 4), Timed(4, 4, 6)]

    found = closed_round([first, second])

    assert found == Round((2000.0, 2000.0, 2000.0, 2000.0), (), rate=1.0)


def test_a_call_at_the_edge_of_that_time_counts_by_its_part() -> None:
    """All were at work from 4 to 8: of the second caller 0.4 s of a run-up of 4.4, and 3.6 s of a call of 5."""
    first = [Timed(0, 0, 4), Timed(4, 4, 8)]
    second = [Timed(0, 0, 4.4), Timed(4.4, 4.4, 9.4)]

    assert closed_round([first, second]).rate == pytest.approx((0.4 / 4.4 + 1 + 3.6 / 5) / 4)


def test_an_open_latency_counts_from_the_intended_start() -> None:
    calls = [Timed(0.1, 0.1, 0.2), Timed(0.15, 0.2, 0.3), Timed(0.4, 0.4, 0.5, "lost")]

    found = open_round(calls, 0.0)

    assert found.latency_ms == pytest.approx((100, 150))
    assert (found.errors, found.late, found.rate) == (("lost",), 1, 4.0)


def test_arrivals_are_a_poisson_process() -> None:
    moments = np.array(arrivals(100, seconds=100, seed=3))
    gaps = np.diff(moments)

    assert moments[0] > 0
    assert moments[-1] < 100
    assert len(moments) == pytest.approx(10_000, rel=0.05)  # its deviation is 1 %
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)  # as of an exponential distribution
    assert arrivals(100, seconds=100, seed=3) == moments.tolist()
    assert arrivals(100, seconds=100, seed=4) != moments.tolist()


def test_there_is_always_one_arrival() -> None:
    assert len(arrivals(0.001, seconds=0.1, seed=0)) == 1


def test_contestants_take_turns_and_another_begins_each_round() -> None:
    order: list[str] = []
    calls = {name: (lambda picture, name=name: order.append(name)) for name in ("one", "two", "three")}

    def way(call):
        call(b"")
        return Round((), (), 0.0)

    found = in_turns(calls, [way] * 4)

    assert order == ["one", "two", "three", "two", "three", "one", "three", "one", "two", "one", "two", "three"]
    assert {name: len(rounds) for name, rounds in found.items()} == {"one": 4, "two": 4, "three": 4}


def test_an_open_round_lasts_for_some_arrivals() -> None:
    first, second = Load(rate=50).rounds(PICTURES, rounds=2, seconds=0.001)

    found = [way(lambda picture: picture) for way in (first, second)]

    assert [len(each.latency_ms) for each in found] == [len(arrivals(50, seconds=0.1, seed=seed)) for seed in (0, 1)]
