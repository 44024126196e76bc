"""Softmax for compilers that do not subtract the largest logit themselves."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tricade_build.stable_softmax import stabilized


def model(*nodes: onnx.NodeProto, out: str, opset: int, dims: tuple[int, ...] = (2, 3)) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *dims])],
        [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def head(opset: int, **attributes: int) -> onnx.ModelProto:
    softmax = helper.make_node("Softmax", ["y"], ["p"], name="softmax", **attributes)
    best = helper.make_node("ArgMax", ["p"], ["best"], name="best", axis=2, keepdims=0)
    return model(helper.make_node("Identity", ["x"], ["y"], name="y"), softmax, best, out="p", opset=opset)


def run(model: onnx.ModelProto, x: NDArray[np.float32], *more: str) -> list[NDArray[np.float32]]:
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    shown.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in more)
    return onnxruntime.InferenceSession(shown.SerializeToString()).run(None, {"x": x})


@pytest.mark.parametrize(("opset", "attributes"), [(11, {"axis": 2}), (12, {"axis": -1}), (13, {}), (18, {"axis": 2})])
def test_no_exponent_is_above_zero_and_answers_are_the_same(opset: int, attributes: dict[str, int]) -> None:
    plain = head(opset, **attributes)
    stable = stabilized(plain)
    x = np.array([[[0, 100, 1000], [-1000, -1001, -1002]]], np.float32)

    (softmax,) = [node for node in stable.graph.node if node.op_type == "Softmax"]
    shares, exponents = run(stable, x, softmax.input[0])
    assert exponents.tolist() == [[[-1000, -900, 0], [0, -1, -2]]]
    whole = 1 + np.exp(-1) + np.exp(-2)  # by hand: exp(-1000) and exp(-900) are 0 in fp32
    assert shares == pytest.approx(np.array([[[0, 0, 1], [1 / whole, np.exp(-1) / whole, np.exp(-2) / whole]]]))
    assert shares == pytest.approx(run(plain, x)[0])


def test_other_axes_than_the_last() -> None:
    x = np.array([[[1, 500], [3, 400], [2, 300]]], np.float32)
    softmax = helper.make_node("Softmax", ["x"], ["p"], name="softmax", axis=1)
    plain = model(softmax, out="p", opset=13, dims=(3, 2))
    stable = stabilized(plain)

    shares, exponents = run(stable, x, stable.graph.node[-1].input[0])
    assert exponents.tolist() == [[[-2, 0], [0, -100], [-1, -200]]]
    assert shares == pytest.approx(run(plain, x)[0])


@pytest.mark.parametrize(
    "plain",
    [
        model(helper.make_node("Relu", ["x"], ["p"], name="relu"), out="p", opset=13),
        head(11),  # over two axes at once
        model(  # within the network, as in attention
            helper.make_node("Softmax", ["x"], ["a"], name="softmax"),
            helper.make_node("Mul", ["a", "x"], ["p"], name="mul"),
            out="p",
            opset=13,
        ),
        model(  # the same in fp16
            helper.make_node("Softmax", ["x"], ["a"], name="softmax"),
            helper.make_node("Cast", ["a"], ["h"], name="cast", to=TensorProto.FLOAT16),
            helper.make_node("Cast", ["x"], ["y"], name="cast x", to=TensorProto.FLOAT16),
            helper.make_node("Mul", ["h", "y"], ["q"], name="mul"),
            helper.make_node("Cast", ["q"], ["p"], name="cast q", to=TensorProto.FLOAT),
            out="p",
            opset=13,
        ),
    ],
    ids=["none", "two axes", "attention", "attention in fp16"],
)
def test_what_is_left_alone(plain: onnx.ModelProto) -> None:
    assert stabilized(plain) is plain


def test_two_of_them() -> None:
    """Each has its own largest."""
    nodes = [helper.make_node("Neg", ["x"], ["y"], name="neg")]
    nodes += [helper.make_node("Softmax", [i], [o], name=o) for i, o in (("x", "p"), ("y", "q"))]
    plain = model(*nodes, helper.make_node("Identity", ["q"], ["r"], name="r"), out="p", opset=13)
    stable = stabilized(plain)
    x = np.array([[[0, 200, 400], [1, 2, 3]]], np.float32)

    assert sum(node.op_type == "Sub" for node in stable.graph.node) == 2
    for one, other in zip(run(plain, x, "q"), run(stable, x, "q"), strict=True):
        assert other == pytest.approx(one)


def test_what_lies_between_it_and_the_end_does_not_hide_it() -> None:
    """As `detr` leaves the last class out."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], name="softmax"),
        helper.make_node("Cast", ["s"], ["c"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Slice", ["c", "start", "stop", "axis"], ["l"], name="slice"),
        helper.make_node("ReduceMax", ["l"], ["p"], name="best", axes=[2], keepdims=0),
    ]
    plain = model(*nodes, out="p", opset=13)
    for name, value in (("start", 0), ("stop", 2), ("axis", 2)):
        plain.graph.initializer.append(onnx.numpy_helper.from_array(np.array([value], np.int64), name))
    stable = stabilized(plain)

    assert sum(node.op_type == "Sub" for node in stable.graph.node) == 1
    x = np.array([[[0, 200, 100], [1, 2, 3]]], np.float32)
    assert run(stable, x)[0] == pytest.approx(run(plain, x)[0])
