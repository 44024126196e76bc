"""What is said where no setting meets the target."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tricade_tune.search import Did, Goal, Measured, failure
from tricade_tune.setting import Setting, Step
from tricade_tune.verdict import Missed, bound, fallbacks, highest_rate, missed

SETTING = Setting((Step("preprocess", 2), Step("detector", 1, max_delay_us=0)))


def measured(p99_ms: float, *, busy: float = 0.96, share: float = 0.0, cpu_s: float = 0.05) -> Measured:
    steps = {"preprocess": Did(1, 1, 0.1, 4.0, 0.2), "detector": Did(1, 1.8, 3.0, 15.0, busy)}
    return Measured(p99_ms, share, 200, steps, cpu_s)


@pytest.mark.parametrize(
    ("most", "highest", "asked"),
    [
        (100, 93.75, [50, 75, 87.5, 93.75]),
        (60, 56.25, [50, 75, 62.5, 56.25]),
        (10, 6.25, [50, 25, 12.5, 6.25]),
        (1, 0, [50, 25, 12.5, 6.25]),
    ],
)
def test_the_rate_is_halved_and_then_bisected(most, highest, asked):
    rates: list[float] = []

    def meets(rate: float) -> bool:
        rates.append(rate)
        return rate <= most

    assert highest_rate(meets, 100) == highest
    assert rates == asked


def test_it_says_the_best_the_bound_the_processors_and_a_rate():
    other = SETTING.changed("preprocess", instances=1)
    tried = {other: measured(90), SETTING: measured(70)}

    found = missed(tried, Goal(50, 16), rate=40, measure_at=lambda _, rate: measured(30 if rate < 25 else 60), cores=2)

    assert str(found).splitlines() == [
        "expected p99 of at most 50 ms at 40 calls/s; none of 2 settings that were tried keeps it; "
        "the pipeline file is as it was",
        "  best: p99 70 ms with preprocess 2; detector 1, 0 µs",
        "  bound by: detector, which executes 96% of the time (all of its instances)",
        "  processors: the calls take 2 cores, 50 ms each; there are 2, which the caller needs too; "
        "more processes cannot help: a machine with more cores would",
        "  with that setting the target was met at 22.5 calls/s; ask for less, or more p99",
    ]


def test_where_nothing_is_busy_it_is_the_longest_step():
    assert bound(measured(70, busy=0.3)).startswith(
        "detector, where a request waits 3 ms and computes 15 ms; it executes 30% of the time"
    )


def test_what_was_not_answered_is_said():
    found = str(Missed(SETTING, measured(math.inf, share=0.25), Goal(50, 16), 1, 40, 0.0, 64))

    assert "best: no p99, 25.0% of 200 calls not answered, with" in found
    assert "not even at 2.5 calls/s did that setting meet it; ask for more p99" in found
    assert "more cores" not in found


def test_what_has_no_figures_is_not_asked_for_a_rate():
    tried = {SETTING: failure("cannot be served: out of memory")}

    found = missed(tried, Goal(50, 16), rate=40, measure_at=lambda *_: pytest.fail("asked"), cores=2)

    assert str(found).splitlines() == [
        "expected calls that can be measured; none of 1 settings that were tried has figures; "
        "the pipeline file is as it was",
        "  preprocess 2; detector 1, 0 µs (cannot be served: out of memory)",
    ]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ([failure("void: it has died")] * 4, "which lower rate that setting would do is not known: a trial failed (void: it has died)"),
        ([measured(60), measured(40), failure("void: it has died"), measured(40)], "with that setting the target was met at 12.5 calls/s"),
        ([measured(60)] * 4, "not even at 2.5 calls/s did that setting meet it"),
    ],
)  # fmt: skip
def test_a_lower_rate_without_figures_is_not_one_that_missed(at, said):
    """40 is halved to 20, 10, 5 and 2.5, or from 10 on to 15 and 12.5."""
    rest = iter(at)

    found = missed({SETTING: measured(70)}, Goal(50, 16), rate=40, measure_at=lambda *_: next(rest), cores=2)

    assert said in str(found)


def test_a_fallback_is_said_with_its_figures():
    plain, fell = measured(70), replace(measured(60), fell_back={"detector": "another GPU"})

    assert fallbacks([plain]) == fallbacks([]) == []
    assert fallbacks([plain, fell, failure("void")]) == [
        "detector ran on ONNX Runtime in 1 of 2 trials: the figures are not those of its plan: another GPU"
    ]
    assert fallbacks([fell]) == ["detector ran on ONNX Runtime: the figures are not those of its plan: another GPU"]
    found = str(Missed(SETTING, fell, Goal(50, 16), 1, 40, 0.0, 64))
    assert "  not of plans: detector ran on ONNX Runtime\n" in found
    assert "not of plans" not in str(Missed(SETTING, plain, Goal(50, 16), 1, 40, 0.0, 64))
