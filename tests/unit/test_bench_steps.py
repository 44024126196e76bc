"""A pipeline's steps from Triton's statistics, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tritonclient.grpc.service_pb2 import ModelStatisticsResponse

from bench.budget import Budget
from bench.steps import Spent, Step, critical_path, spent_from, steps_of


def ensemble(**needs: tuple[str, ...]) -> SimpleNamespace:
    """`p` with steps that each make a tensor of their own name."""
    steps = [
        SimpleNamespace(model_name=name, input_map={t: t for t in (*inputs, "IMAGE")}, output_map={name: name})
        for name, inputs in needs.items()
    ]
    return SimpleNamespace(name="p", ensemble_scheduling=SimpleNamespace(step=steps))


def step(model: str, ms: float, *needs: str) -> Step:
    return Step(model, needs, (0.0, 0.0, ms, 0.0), 0)


def test_statistics_are_read_in_milliseconds() -> None:
    answer = ModelStatisticsResponse()
    model = answer.model_stats.add(name="a")
    stats = model.inference_stats
    stats.success.count, stats.success.ns = 4, 10_000_000
    stats.queue.ns, stats.compute_input.ns, stats.compute_infer.ns, stats.compute_output.ns = (
        1_000_000 * ms for ms in (1, 2, 3, 4)
    )

    assert spent_from(answer) == {"a": Spent(4, (1, 2, 3, 4), 10)}
    assert spent_from(answer)["a"].since(Spent(1, (1, 1, 1, 1), 4)) == Spent(3, (0, 1, 2, 3), 6)


def test_each_step_is_what_one_call_takes() -> None:
    spent = {"p": Spent(2, (0, 2, 24, 4), 40), "a": Spent(2, (2, 1, 8, 2), 14), "b": Spent(2, (4, 1, 16, 2), 24)}

    assert steps_of(ensemble(a=(), b=("a",)), spent) == [
        Step("a", (), (1, 0.5, 4, 1), 0),
        Step("b", ("a",), (2, 0.5, 8, 1), 0),
    ]


def test_a_step_s_own_batch_is_what_the_others_leave_of_the_ensemble_s_sum() -> None:
    """`b` has been asked six times in two calls: twice by the ensemble, four times by `a`."""
    spent = {"p": Spent(2, (0, 2, 24, 4), 40), "a": Spent(2, (2, 1, 8, 2), 14), "b": Spent(6, (9, 6, 66, 9), 90)}

    a, b = steps_of(ensemble(a=(), b=("a",)), spent)

    assert (b.parts_ms, b.calls) == ((0, 0.5, 8, 1), 2)
    assert a.parts_ms == (1, 0.5, 4, 1)


def test_of_several_such_steps_each_is_its_average_batch() -> None:
    spent = {
        "p": Spent(1, (0, 0, 9, 0), 9),
        "a": Spent(1, (0, 0, 1, 0), 1),
        "b": Spent(2, (0, 0, 6, 0), 6),
        "c": Spent(4, (0, 0, 8, 0), 8),
    }

    found = steps_of(ensemble(a=(), b=("a",), c=("a",)), spent)

    assert [(each.ms, each.calls) for each in found] == [(1, 0), (3, 1), (2, 3)]


def test_the_critical_path_is_the_slowest_chain() -> None:
    crop, left, right = step("crop", 2), step("left", 3, "crop"), step("right", 5, "crop")
    label = step("label", 1, "left", "right")

    assert critical_path([crop, left, right, label]) == [crop, right, label]
    assert critical_path([crop]) == [crop]
    assert critical_path([step("a", 1), step("b", 9)]) == [step("b", 9)]


@pytest.mark.parametrize(("measured_ms", "adds_up"), [(20.0, True), (22.0, True), (18.5, True), (23.0, False)])
def test_a_budget_adds_up_within_a_tenth(measured_ms: float, adds_up: bool) -> None:
    path = [step("a", 6), step("b", 8)]
    budget = Budget(
        "w", 9, 1.0, 2.0, path, [], server_ms=15.0, decode_ms=2.0, measured_ms=measured_ms, moved={}, inline={}
    )

    assert (budget.sum_ms, budget.between_ms, budget.adds_up) == (20.0, 1.0, adds_up)
