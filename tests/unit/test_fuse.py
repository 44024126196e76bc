"""`tricade_build.fuse`: what is folded into a convolution answers as before, and the rest is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import graphs
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tricade_build.fuse import fuse
from tricade_build.graph import add_prefix
from tricade_build.kept import named

node = graphs.node
random = np.random.default_rng(3)


def values(*shape: int, low: float = -1, high: float = 1) -> NDArray[np.float32]:
    return random.uniform(low, high, shape).astype(np.float32)


NORM = {"gamma": values(6), "beta": values(6), "mean": values(6), "variance": values(6, low=0.1, high=4)}
NORMED = ["c", *NORM]


def made(nodes: Sequence[onnx.NodeProto], constants: dict[str, NDArray[Any]], **keys: Any) -> onnx.ModelProto:
    """As the network lies in a folded graph, with a node of ours behind it."""
    model = graphs.model_of(nodes, constants, **keys)
    add_prefix(model.graph, "network/")
    model.graph.node.append(node("Neg", [model.graph.output[0].name], ["SCORE"], name="tricade/0/Neg"))
    model.graph.output[0].name = "SCORE"
    named(model)
    return model


def fused(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, str]]:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    into = fuse(copy)
    return copy, into


def operators(model: onnx.ModelProto) -> dict[str, int]:
    return dict(Counter(each.op_type for each in model.graph.node))


def same(one: onnx.ModelProto, other: onnx.ModelProto) -> None:
    picture = np.random.default_rng(0).normal(0, 1, (2, 3, 7, 9)).astype(np.float32)
    np.testing.assert_allclose(
        graphs.run(other, picture)["SCORE"], graphs.run(one, picture)["SCORE"], rtol=1e-5, atol=1e-5
    )


CONV = {"op": "Conv", "w": values(6, 3, 3, 3)}
GROUPED = {"op": "Conv", "w": values(6, 1, 3, 3), "group": 3}
TRANSPOSED = {"op": "ConvTranspose", "w": values(3, 6, 3, 3)}
TRANSPOSED_GROUPED = {"op": "ConvTranspose", "w": values(3, 2, 3, 3), "group": 3}


@pytest.mark.parametrize(
    "layer", [CONV, GROUPED, TRANSPOSED, TRANSPOSED_GROUPED], ids=["conv", "grouped", "transposed", "both"]
)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("epsilon", [1e-5, 0.5])
def test_a_batch_norm_goes_into_the_convolution_before_it(layer: dict[str, Any], biased: bool, epsilon: float) -> None:
    keys = {key: value for key, value in layer.items() if key not in ("op", "w")}
    nodes = [
        node(layer["op"], ["x", "w", "b"][: 3 if biased else 2], ["c"], name="conv", pads=[1, 1, 1, 1], **keys),
        node("BatchNormalization", NORMED, ["n"], name="norm", epsilon=epsilon),
        node("Relu", ["n"], ["y"], name="act"),
    ]
    model = made(nodes, {"w": layer["w"], "b": values(6)} | NORM)
    found, into = fused(model)
    assert operators(found) == {layer["op"]: 1, "Relu": 1, "Neg": 1}
    assert into == {"network/norm": "network/conv"}
    assert "network/n" in found.graph.node[0].output  # the answer keeps the name that the rest knows
    same(model, found)


@pytest.mark.parametrize(
    ("op", "value", "goes"),
    [
        ("Add", values(1, 6, 1, 1), True),
        ("Add", values(6, 1, 1), True),
        ("Mul", values(1, 6, 1, 1), True),
        ("Mul", np.array(3, np.float32), True),
        ("Add", values(1), True),
        ("Add", values(9), False),
        ("Mul", values(2, 6, 1, 1), False),
        ("Add", values(1, 6, 7, 9), False),
        ("Sub", values(1, 6, 1, 1), False),
        ("Add", values(1, 1, 1, 1, 1), False),
    ],
    ids=["a bias", "without a batch", "a scale", "a number", "a side of 1", "a row", "by picture", "by place", "other",
         "a longer shape"],
)  # fmt: skip
@pytest.mark.parametrize("behind", [True, False])
def test_what_is_one_number_for_each_channel_goes_too(
    op: str, value: NDArray[np.float32], goes: bool, behind: bool
) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        node(op, ["c", "v"] if behind else ["v", "c"], ["y"], name="then"),
    ]
    model = made(nodes, {"w": values(6, 3, 3, 3), "v": value})
    found, into = fused(model)
    assert into == ({"network/then": "network/conv"} if goes else {})
    same(model, found)


def test_a_chain_goes_as_a_whole_past_identities() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c0"], name="conv"),
        node("Identity", ["c0"], ["c1"], name="same"),
        node("Add", ["c1", "b"], ["c"], name="bias"),
        node("BatchNormalization", NORMED, ["n"], name="norm"),
        node("Identity", ["n"], ["n1"], name="same again"),
        node("Mul", ["n1", "two"], ["m"], name="twice"),
        node("Relu", ["m"], ["y"], name="act"),
    ]
    model = made(nodes, {"w": values(6, 3, 3, 3), "b": values(1, 6, 1, 1), "two": np.array(2, np.float32)} | NORM)
    found, into = fused(model)
    assert operators(found) == {"Conv": 1, "Relu": 1, "Neg": 1}
    assert into == dict.fromkeys(["network/bias", "network/norm", "network/twice"], "network/conv")
    same(model, found)


def test_constants_of_all_kinds_are_found() -> None:
    weight = values(6, 3, 3, 3)
    nodes = [
        node("Constant", [], ["w0"], value=numpy_helper.from_array(weight)),
        node("Identity", ["w0"], ["w"]),
        *(node("Constant", [], [name], value=numpy_helper.from_array(value)) for name, value in NORM.items()),
        node("Conv", ["x", "w"], ["c"]),
        node("BatchNormalization", NORMED, ["y"]),
    ]
    model = made(nodes, {})
    found, _ = fused(model)
    assert operators(found) == {"Conv": 1, "Neg": 1}
    same(model, found)


def test_weights_that_others_share_are_not_changed_for_them() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="one"),
        node("BatchNormalization", NORMED, ["n"], name="norm"),
        node("Conv", ["x", "w"], ["d"], name="two"),
        node("Add", ["n", "d"], ["y"], name="add"),
    ]
    model = made(nodes, {"w": values(6, 3, 3, 3)} | NORM)
    found, _ = fused(model)
    assert operators(found) == {"Conv": 2, "Add": 1, "Neg": 1}
    same(model, found)


@pytest.mark.parametrize(
    ("tail", "answers"),
    [
        ([node("Add", ["n", "c"], ["y"])], "y"),  # something else reads what the convolution answers
        ([node("Identity", ["n"], ["y"])], "c"),  # the network answers with it
    ],
    ids=["read twice", "an answer"],
)
def test_what_others_need_stays(tail: list[onnx.NodeProto], answers: str) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="conv"),
        node("BatchNormalization", NORMED, ["n"], name="norm"),
        *tail,
    ]
    model = made(nodes, {"w": values(6, 3, 3, 3)} | NORM)
    if answers == "c":
        model.graph.node.append(node("Abs", ["network/c"], ["OTHER"], name="tricade/1/Abs"))
        model.graph.output.append(helper.make_tensor_value_info("OTHER", TensorProto.FLOAT, None))
    found, into = fused(model)
    assert into == {}
    assert "BatchNormalization" in operators(found)
    same(model, found)


def test_what_a_branch_reads_stays() -> None:
    def branch(op: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(f"of {op}", TensorProto.FLOAT, None)
        return helper.make_graph([node(op, ["c"], [out.name])], op, [], [out])

    nodes = [
        node("Conv", ["x", "w"], ["c"], name="conv"),
        node("BatchNormalization", NORMED, ["n"], name="norm"),
        node("If", ["always"], ["i"], name="if", then_branch=branch("Neg"), else_branch=branch("Abs")),
        node("Add", ["n", "i"], ["y"], name="add"),
    ]
    model = made(nodes, {"w": values(6, 3, 3, 3), "always": np.array(True)} | NORM)
    found, into = fused(model)
    assert into == {}
    same(model, found)


def test_our_own_nodes_stay() -> None:
    """Decoding may begin with a sum, too."""
    model = made([node("Conv", ["x", "w"], ["y"], name="conv")], {"w": values(6, 3, 3, 3)})
    model.graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), "tricade/constant/0"))
    model.graph.node[-1].CopyFrom(node("Add", ["network/y", "tricade/constant/0"], ["SCORE"], name="tricade/0/Add"))
    found, into = fused(model)
    assert into == {}
    assert operators(found) == {"Conv": 1, "Add": 1}
    assert any("network/y" in each.output for each in found.graph.node)


def test_a_batch_norm_in_training_stays() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="conv"),
        node("BatchNormalization", NORMED, ["y", "m", "v"], name="norm", training_mode=1),
    ]
    _, into = fused(made(nodes, {"w": values(6, 3, 3, 3)} | NORM, opset=15))
    assert into == {}
