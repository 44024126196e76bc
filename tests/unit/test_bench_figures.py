"""Intervals against binomial chances by hand, figures against rounds by hand."""

from __future__ import annotations

import json
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from bench.figures import figures_of
from bench.intervals import Interval, median_of, percentile_of, quantile_of
from bench.load import Round
from bench.measure import Cell, Load
from bench.plots import write_plots
from bench.report import notes, print_cells, write_json
from bench.workloads import Workload

WORKLOAD = Workload("squares-1-small", "squares", "one", (b"",))


def one_round(*latency_ms: float, rate: float = 1.0, errors: tuple[str, ...] = (), late: int = 0) -> Round:
    return Round(latency_ms, errors, rate, late)


@pytest.mark.parametrize(
    ("samples", "low", "value", "high", "coverage"),
    [
        ([7], 7, 7, 7, 0),  # one round tells nothing about its like
        ([1, 2, 3], 1, 2, 3, 1 - 2 / 8),
        ([5, 3, 1, 2, 4], 1, 3, 5, 1 - 2 / 32),
        # Of nine, one or none below the median has a chance of 10/512 on either side.
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 2, 5, 8, 1 - 20 / 512),
    ],
)
def test_the_median_lies_between_two_rounds(samples, low, value, high, coverage) -> None:
    assert median_of(samples) == Interval(low, value, high, pytest.approx(coverage), len(samples))


def test_an_interval_holds_the_true_quantile_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    found = [quantile_of(random.exponential(1, 60).tolist(), 0.9) for _ in range(2000)]

    hits = np.mean([each.low <= -np.log(0.1) <= each.high for each in found])

    assert found[0].coverage >= 0.95
    assert hits == pytest.approx(found[0].coverage, abs=0.015)


def test_many_samples_need_no_numbers_beyond_what_floats_hold() -> None:
    found = quantile_of(range(5000), 0.99)

    assert found.low < 4950 < found.high
    assert found.coverage >= 0.95


def test_a_percentile_is_of_the_rounds_where_each_has_calls_enough() -> None:
    rounds = [one_round(*range(100)), one_round(*range(100, 200)), one_round(*range(200, 300))]

    assert percentile_of(rounds, 99) == median_of([98.01, 198.01, 298.01])


def test_else_of_all_calls_together() -> None:
    rounds = [one_round(*range(60)), one_round(*range(60, 120))]

    assert percentile_of(rounds, 99) == quantile_of(range(120), 0.99)
    assert percentile_of([one_round(1.0), one_round(2.0), one_round(9.0)], 50) == median_of([1.0, 2.0, 9.0])


def test_and_none_where_even_those_are_too_few() -> None:
    assert percentile_of([one_round(*range(99))], 99) is None
    assert percentile_of([one_round()], 50) is None


def test_ratios_are_to_tricade_in_the_same_round() -> None:
    """A machine twice as slow in the second round changes nothing."""
    cell = Cell(
        WORKLOAD,
        Load(callers=1),
        {
            "tricade": [one_round(10, 10, rate=100), one_round(20, 20, rate=50), one_round(10, 10, rate=100)],
            "other": [one_round(30, 30, rate=25), one_round(60, 60, rate=12.5), one_round(30, 30, rate=25)],
        },
    )

    found = figures_of(cell)

    assert found["other"].p50_ratio == Interval(3, 3, 3, pytest.approx(0.75), 3)
    assert found["other"].rate_ratio == Interval(0.25, 0.25, 0.25, pytest.approx(0.75), 3)
    assert found["tricade"].p50_ratio is None
    assert (found["tricade"].rate.value, found["tricade"].calls) == (100, 6)


def test_a_round_without_answers_has_no_part_in_ratios() -> None:
    rounds = {"tricade": [one_round(10, rate=4), one_round(10, rate=4)], "other": [one_round(rate=0), one_round(5)]}

    found = figures_of(Cell(WORKLOAD, Load(rate=5.0), rounds))["other"]

    assert (found.p50_ratio.value, found.p50_ratio.count) == (0.5, 1)
    assert found.rate.value == 0.5


@pytest.fixture
def cells() -> list[Cell]:
    rounds = {
        "tricade": [one_round(12.34, 12.34, 12.34, rate=80.2), one_round(13, 13, 13, rate=77)],
        "other": [one_round(25, errors=("OSError: gone",) * 2), one_round(26, late=3)],
    }
    return [Cell(WORKLOAD, Load(callers=8), rounds), Cell(WORKLOAD, Load(rate=40.25), rounds)]


def test_the_table_shows_errors_and_who_was_not_measured(cells: list[Cell]) -> None:
    console = Console(width=170, record=True, file=StringIO())

    print_cells(console, cells, {("third", "*"): "did not start: [out] of memory"})

    text = console.export_text()
    row = next(line for line in text.splitlines() if "other" in line)
    assert row.split("│")[-2].strip() == "2"
    assert "12.7 [12.3 13.0]" in text
    assert "8 callers" in text
    assert "40.2 /s" in text
    assert "not measured: third on *: did not start: [out] of memory" in text


def test_notes_say_what_the_table_does_not(cells: list[Cell]) -> None:
    assert notes(cells) == [
        "The brackets hold the median with a chance of 50%; more --rounds raise it.",
        "– : fewer calls than that percentile takes; more --seconds or --rounds give them.",
        "6 open-loop calls began late, the machine or all threads being busy; their latencies have it.",
    ]
    assert notes([]) == []


def test_the_json_has_every_round(cells: list[Cell], tmp_path) -> None:
    file = tmp_path / "out" / "bench.json"

    write_json(file, cells, {("third", "*"): "why"}, {"machine": {"cores": 2}}, {"NMS": {"tricade": 1.0}})

    found = json.loads(file.read_text())
    other = found["cells"][0]["contestants"]["other"]
    assert (found["machine"], found["pieces_p50_ms"]) == ({"cores": 2}, {"NMS": {"tricade": 1.0}})
    assert found["not_measured"] == [{"contestant": "third", "workload": "*", "why": "why"}]
    assert [(cell["loop"], cell["callers"], cell["offered_per_s"]) for cell in found["cells"]] == [
        ("closed", 8, 0.0),
        ("open", 0, 40.25),
    ]
    assert other["errors"] == {"OSError: gone": 2}
    assert other["rounds"][1] == {"rate": 1.0, "late": 3, "errors": 0, "latency_ms": [26]}
    assert other["latency_ms"]["p50"]["value"] == 25.5


def test_a_plot_for_each_workload(cells: list[Cell], tmp_path) -> None:
    (written,) = write_plots(tmp_path, "bench", cells)

    assert written.name == "bench-squares-1-small.svg"
    assert written.read_text().lstrip().startswith("<?xml")
