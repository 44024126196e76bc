"""`simulated`: numbers as numpy's float16 has them, bit for bit, out of ONNX Runtime's fp32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from graphs import node
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tricade_build.half_simulated import simulated
from tricade_build.runtime import Runtime

FULL, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def model_of(
    nodes: Sequence[onnx.NodeProto], *, entry: int = FULL, out: int = FULL, **constants: Any
) -> onnx.ModelProto:
    """From `x` [n] to `y`."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info("x", entry, ["n"])],
        [helper.make_tensor_value_info("y", out, ["m"])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def run(model: onnx.ModelProto, x: NDArray[Any]) -> NDArray[Any]:
    made = simulated(model)
    onnx.checker.check_model(made)
    onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)
    return Runtime(made).run({"x": x})["y"]


THROUGH = (node("Cast", ["x"], ["h"], to=HALF), node("Cast", ["h"], ["y"], to=FULL))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1 / 3, 0.333251953125),
        (2049, 2048),  # in the middle: to even
        (2051, 2052),
        (2049.01, 2050),
        (640.25, 640),
        (65504, 65504),
        (65519.99, 65504),
        (65520, np.inf),
        (70000, np.inf),
        (-70000, -np.inf),
        (3e38, np.inf),
        (np.inf, np.inf),
        (np.nan, np.nan),
        (0, 0),
        (2**-14, 2**-14),
        (1e-5, 168 * 2**-24),
        (2**-24, 2**-24),
        (2**-25, 0),
        (1.01 * 2**-25, 2**-24),
        (-1e-9, 0),
    ],
)
def test_one_number_by_hand(value: float, expected: float) -> None:
    np.testing.assert_array_equal(run(model_of(THROUGH), np.array([value], np.float32)), np.float32([expected]))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_any_numbers_are_numpys() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 20, np.uint32).view(np.float32)
    near = np.random.default_rng(1).normal(0, 300, 1 << 20).astype(np.float32)
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[:-1] + halves[1:]) / 2  # between each number of fp16 and the next

    for x in (bits, near, halves, middles):
        np.testing.assert_array_equal(run(model_of(THROUGH), x), x.astype(np.float16).astype(np.float32))


@pytest.mark.filterwarnings("ignore:overflow")
def test_each_step_is_rounded() -> None:
    """Where ONNX Runtime's own fp16 on a CPU gives 100."""
    steps = [
        node("Cast", ["x"], ["a"], to=HALF),
        node("Mul", ["a", "many"], ["b"]),
        node("Mul", ["b", "few"], ["c"]),
        node("Cast", ["c"], ["y"], to=FULL),
    ]
    few, many = np.float16(0.001), np.float16(1000)
    x = np.array([100, 65, 1, 1 / 3, -66, 0], np.float32)

    found = run(model_of(steps, many=many, few=few), x)

    np.testing.assert_array_equal(found, (x.astype(np.float16) * many * few).astype(np.float32))
    assert found[0] == np.inf


def test_infinity_less_infinity_is_no_number() -> None:
    steps = [
        node("Cast", ["x"], ["a"], to=HALF),
        node("Mul", ["a", "a"], ["b"]),
        node("Sub", ["b", "b"], ["c"]),
        node("Cast", ["c"], ["y"], to=FULL),
    ]

    np.testing.assert_array_equal(run(model_of(steps), np.array([300, 200], np.float32)), np.float32([np.nan, 0]))


def test_what_is_fp32_is_left_alone() -> None:
    model = model_of([node("Mul", ["x", "third"], ["y"])], third=np.float32(1 / 3))

    x = np.random.default_rng(0).normal(0, 1e6, 1000).astype(np.float32)

    np.testing.assert_array_equal(run(model, x), x * np.float32(1 / 3))
    assert [n.op_type for n in simulated(model).graph.node] == ["Mul"]


def test_inputs_outputs_and_constants_of_fp16() -> None:
    constant = node("Constant", [], ["third"], value=numpy_helper.from_array(np.array([1 / 3], np.float16)))
    model = model_of([constant, node("Mul", ["x", "third"], ["y"])], entry=HALF, out=HALF)
    x = np.random.default_rng(0).normal(0, 1000, 1000).astype(np.float16)

    found = run(model, x)

    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, x * np.float16(1 / 3))
    assert model.graph.input[0].type.tensor_type.elem_type == HALF


def test_an_input_that_is_the_output() -> None:
    x = np.array([1, 2], np.float16)

    np.testing.assert_array_equal(run(model_of([node("Identity", ["x"], ["y"])], entry=HALF, out=HALF), x), x)


@pytest.mark.parametrize("yes", [True, False])
def test_branches_are_rounded_too(yes: bool) -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(name, HALF, None)
        return helper.make_graph([node(op, ["a", "a"], [name])], name, [], [out])

    steps = [
        node("Cast", ["x"], ["a"], to=HALF),
        node("If", ["yes"], ["b"], then_branch=branch("t", "Mul"), else_branch=branch("e", "Add")),
        node("Cast", ["b"], ["y"], to=FULL),
    ]
    a = np.array([1 / 3, 2049], np.float32).astype(np.float16)

    found = run(model_of(steps, yes=np.array(yes)), np.array([1 / 3, 2049], np.float32))

    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, (a * a if yes else a + a).astype(np.float32))


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
def test_no_optimizer_takes_the_rounding_away(level: str) -> None:
    """A matrix product with a bias and a gain behind it: what is fused elsewhere."""
    random = np.random.default_rng(0)
    x = random.normal(0, 1, 64).astype(np.float32)
    weights, bias = random.normal(0, 1, (64, 64)).astype(np.float16), random.normal(0, 1, 64).astype(np.float16)
    steps = [
        node("Cast", ["x"], ["a"], to=HALF),
        node("MatMul", ["a", "weights"], ["b"]),
        node("Add", ["b", "bias"], ["c"]),
        node("Mul", ["c", "gain"], ["d"]),
        node("Relu", ["d"], ["e"]),
        node("Cast", ["e"], ["y"], to=FULL),
    ]
    made = simulated(model_of(steps, weights=weights, bias=bias, gain=np.float16(3)))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)

    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": x})

    product = (x.astype(np.float16).astype(np.float32) @ weights.astype(np.float32)).astype(np.float16)
    expected = np.maximum((product + bias) * np.float16(3), 0)
    # Sums in another order may land on the other side of a middle.
    np.testing.assert_allclose(found, expected.astype(np.float32), rtol=2**-10)
    assert (found == expected).mean() > 0.9
    np.testing.assert_array_equal(found, found.astype(np.float16).astype(np.float32))
