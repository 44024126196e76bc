"""What is read off an engine, and what does not fit: in which words, at which size."""

from __future__ import annotations

import pytest
from gpu.fakes import Engine, Format, classifier, specification

from tricade.errors import BadRequest, EngineMisfit
from tricade.plan import check_fit, check_outputs, inputs_to_expect, largest_inputs, plan_from_engine
from tricade.stage import Tensor


def test_an_engine_is_read_by_its_tensors_names():
    plan = plan_from_engine(classifier(), "model.plan")
    assert plan.inputs == (Tensor("CROPS", "UINT8", (-1, 2, -1, 3)),)
    assert plan.outputs == (Tensor("INDEX", "INT32", (-1, 1)), Tensor("SCORE", "FP32", (-1, 1)))
    assert [profile.largest for profile in plan.profiles] == [{"CROPS": (8, 2, 8, 3)}, {"CROPS": (8, 2, 4, 3)}]


def test_a_shape_that_no_profile_changes_is_asked_of_none():
    engine = Engine({"X": ("FLOAT", (1, 2))}, {"Y": ("FLOAT", (1, 2))}, profiles=[{}])
    assert plan_from_engine(engine, "model.plan").profiles[0].smallest == {"X": (1, 2)}


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (object(), "TensorRT 8.5 or later"),
        (Engine({"X": ("BF16", (1,))}, {}, [{}], version="11.4.0"), "X of model.plan is BF16, expected is one of BOOL"),
        (Engine({"X": ("FLOAT", (1,))}, {}, [{}], on_host="X"), "X of model.plan lies in HOST memory"),
        (Engine({"X": ("FLOAT", (1,))}, {}, [{}], formats={"X": Format.HWC}), "laid out HWC"),
    ],
)
def test_an_engine_that_arrays_cannot_feed_is_refused(engine, words):
    with pytest.raises(EngineMisfit, match=words):
        plan_from_engine(engine, "model.plan")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"max_batch_size": 1},
        {"max_batch_size": 0, "inputs": (Tensor("CROPS", "UINT8", (3, 2, 4, 3)),), "outputs": ()},
        {"inputs": (Tensor("CROPS", "UINT8", (2, 7, 3)),)},
        {"outputs": (Tensor("SCORE", "FP32", (-1,)),)},
    ],
)
def test_what_a_plan_can_do_may_be_configured(changes):
    check_fit(specification(**changes), plan_from_engine(classifier(), "model.plan"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"inputs": (Tensor("CROP", "UINT8", (2, -1, 3)),)},
            "has the inputs CROP and the outputs INDEX, SCORE, model.plan has the inputs CROPS and",
        ),
        ({"inputs": ()}, "has the inputs  and"),
        ({"outputs": (Tensor("TOP", "FP32", (1,)),)}, "the outputs TOP, model.plan has the inputs CROPS and the"),
        (
            {"inputs": (Tensor("CROPS", "FP32", (2, -1, 3)),)},
            "CROPS FP32 [-1,2,-1,3], model.plan has CROPS UINT8 [-1,2,-1,3]",
        ),
        (
            {"inputs": (Tensor("CROPS", "UINT8", (3, -1, 2)),)},
            "CROPS UINT8 [-1,3,-1,2], model.plan has CROPS UINT8 [-1,2,-1,3]",
        ),
        ({"inputs": (Tensor("CROPS", "UINT8", (2, 3)),)}, "CROPS UINT8 [-1,2,3], model.plan has"),
        ({"inputs": (Tensor("CROPS", "UINT8", (-1, -1, 3)),)}, "CROPS UINT8 [-1,-1,-1,3], model.plan has"),
        ({"outputs": (Tensor("SCORE", "FP32", (2,)),)}, "SCORE FP32 [-1,2], model.plan has SCORE FP32 [-1,1]"),
        (
            {"max_batch_size": 16},
            "has max_batch_size 16, thus allows CROPS [9,2,-1,3], model.plan takes CROPS [1,2,4,3] to [8,2,8,3] or",
        ),
        ({"inputs": (Tensor("CROPS", "UINT8", (2, 9, 3)),)}, "allows CROPS [1,2,9,3], model.plan takes"),
    ],
)
def test_a_misfit_names_both_sides_and_what_to_do(changes, words):
    with pytest.raises(EngineMisfit) as caught:
        check_fit(specification(**changes), plan_from_engine(classifier(), "model.plan"))
    assert words in str(caught.value)
    assert str(caught.value).endswith("; change config.pbtxt or run: tricade build")


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"INDEX": (8, 1), "SCORE": (-1, 1)}, "SCORE [-1,1] of model.plan has a size that its data decide"),
        ({"INDEX": (8, 1), "SCORE": (1, 1)}, "SCORE is [8,1] for a batch of 8, model.plan gives [1,1]"),
        ({"INDEX": (8, 5), "SCORE": (8, 1)}, "INDEX is [8,1] for a batch of 8, model.plan gives [8,5]"),
    ],
)
def test_outputs_must_come_out_as_configured(shapes, words):
    plan = plan_from_engine(classifier(), "model.plan")
    with pytest.raises(EngineMisfit) as caught:
        check_outputs(specification(), plan, shapes, batch=8)
    assert words in str(caught.value)


def test_outputs_are_tried_where_the_configuration_allows_them_largest():
    plan = plan_from_engine(classifier(), "model.plan")
    assert list(largest_inputs(specification(), plan)) == [{"CROPS": (8, 2, 8, 3)}, {"CROPS": (8, 2, 4, 3)}]
    fixed = specification(inputs=(Tensor("CROPS", "UINT8", (2, 7, 3)),))
    assert list(largest_inputs(fixed, plan)) == [{"CROPS": (8, 2, 7, 3)}]


@pytest.mark.parametrize(
    ("changes", "most", "expected"),
    [
        ({}, 32, [(8, 8), (8, 4), (7, 4), (6, 4), (5, 4), (4, 4), (3, 4), (2, 4), (1, 4)]),
        ({}, 5, [(8, 8), (8, 4), (3, 4), (2, 4), (1, 4)]),
        ({}, 1, [(8, 8), (8, 4), (1, 4)]),
        ({"max_batch_size": 2}, 32, [(2, 8), (2, 4), (1, 4)]),
        ({"max_batch_size": 1}, 32, [(1, 8), (1, 4)]),
        ({"inputs": (Tensor("CROPS", "UINT8", (2, 7, 3)),)}, 3, [(8, 7), (2, 7), (1, 7)]),
    ],
)
def test_the_inputs_to_expect_are_the_largest_and_few_narrow_rows(changes, most, expected):
    found = inputs_to_expect(specification(**changes), plan_from_engine(classifier(), "model.plan"), most=most)
    assert found == [{"CROPS": (rows, 2, width, 3)} for rows, width in expected]


@pytest.mark.parametrize(("shape", "profile"), [((1, 2, 4, 3), 1), ((8, 2, 4, 3), 1), ((8, 2, 5, 3), 0)])
def test_the_narrowest_profile_that_holds_the_shape_is_taken(shape, profile):
    assert plan_from_engine(classifier(), "model.plan").profile_for({"CROPS": shape}) == profile


@pytest.mark.parametrize("shape", [(9, 2, 4, 3), (1, 2, 9, 3), (1, 2, 3, 3), (2, 4, 3)])
def test_a_shape_outside_every_profile_is_refused_with_the_range(shape):
    with pytest.raises(BadRequest, match=r"takes CROPS \[1,2,4,3\] to \[8,2,8,3\] or .* came; keep inside"):
        plan_from_engine(classifier(), "model.plan").profile_for({"CROPS": shape})
