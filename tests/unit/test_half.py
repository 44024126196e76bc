"""`half_from`: what becomes fp16, what stays fp32, and that nothing is cast for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import graphs
import numpy as np
import onnx
import pytest
from graphs import model_of, node
from onnx import TensorProto, helper, numpy_helper

from tricade_build.errors import FoldError
from tricade_build.fold import Folded, Front, fold
from tricade_build.half import half_from, largest_of
from tricade_build.half_simulated import simulated
from tricade_build.heads import HEADS, Want
from tricade_build.runtime import Runtime
from tricade_build.spec import Normalize
from tricade_build.wires import read_inside

FULL, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
UNIT = Normalize()
WEIGHTS = {
    "w": np.random.default_rng(1).normal(0, 0.3, (4, 3, 1, 1)).astype(np.float32),
    "v": np.random.default_rng(2).normal(0, 0.3, (5, 4, 1, 1)).astype(np.float32),
    "zero": np.array(0, np.int64),
}
# What a test's network ends in: five numbers out of four channels `z` of any size.
TAIL = (
    node("Conv", ["z", "v"], ["last"], name="last"),
    node("GlobalAveragePool", ["last"], ["mean"], name="pool"),
    node("Flatten", ["mean"], ["y"], name="flat"),
)


def folded(model: onnx.ModelProto, *, widths: tuple[int, ...] = (), normalize: Normalize = UNIT) -> Folded:
    def end(nodes: Any, answer: Any) -> Any:
        return HEADS["softmax"].end(nodes, answer, Want(top_k=2, any_width=False))

    return fold(model, Front("CROPS", (8, 12), widths, normalize), end)


def network(*middle: onnx.NodeProto, constants: Mapping[str, Any] | None = None, opset: int = 13) -> onnx.ModelProto:
    """A convolution that makes `a`, nodes from there to `z`, and `TAIL`."""
    first = node("Conv", ["x", "w"], ["a"], name="first")
    return model_of([first, *middle, *TAIL], {**WEIGHTS, **(constants or {})}, opset=opset)


def half(*middle: onnx.NodeProto, constants: Mapping[str, Any] | None = None, opset: int = 13, **keys: Any) -> Folded:
    return half_from(folded(network(*middle, constants=constants, opset=opset)), **keys)


def types_of(model: onnx.ModelProto) -> dict[str, int]:
    """Of all tensors; constants too."""
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    values = (*graph.input, *graph.output, *graph.value_info)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    return types | {constant.name: constant.data_type for constant in graph.initializer}


def precision_of(made: Folded, op: str) -> set[str]:
    """What the operator's nodes take in place 0, in the network's part."""
    types = types_of(made.model)
    taken = {types[n.input[0]] for n in made.model.graph.node if n.op_type == op and n.name.startswith("network/")}
    return {{FULL: "fp32", HALF: "fp16"}[kind] for kind in taken}


def casts(made: Folded) -> list[tuple[str, str]]:
    """What casts of numbers take and give."""
    return [
        (n.input[0], n.output[0])
        for n in made.model.graph.node
        if n.op_type == "Cast" and helper.get_node_attr_value(n, "to") in (FULL, HALF)
    ]


def check_clean(made: Folded) -> None:
    """No cast of what a cast made, none to the type that it is of, none twice, all of it needed."""
    types, graph = types_of(made.model), made.model.graph
    made_by = {out: n for n in graph.node for out in n.output}
    read = {name for n in graph.node for name in (*n.input, *read_inside(n))} | {value.name for value in graph.output}
    for source, result in casts(made):
        assert types[source] != types[result], source
        assert source not in made_by or made_by[source].op_type != "Cast", source
        assert result in read
    assert max(Counter((source, types[result]) for source, result in casts(made)).values(), default=1) == 1
    assert {constant.name for constant in graph.initializer} <= read
    assert [value.name for value in graph.value_info] == []


def test_the_network_is_fp16_and_what_is_around_it_is_not() -> None:
    plain = folded(graphs.pooled_linear(), normalize=Normalize(mean=(1, 2, 3), std=(4, 5, 6)))
    before = plain.model.SerializeToString()

    made = half_from(plain)

    assert plain.model.SerializeToString() == before
    assert (made.shapes, made.raw) == (plain.shapes, plain.raw)
    assert list(made.model.graph.input) == list(plain.model.graph.input)
    assert list(made.model.graph.output) == list(plain.model.graph.output)
    types = types_of(made.model)
    assert {name: types[name] for name in ("network/x", "network/w", "network/m", "network/y")} == dict.fromkeys(
        ("network/x", "network/w", "network/m", "network/y"), HALF
    )
    ours = [n for n in made.model.graph.node if n.name.startswith(("tricade/front/", "tricade/0", "tricade/1"))]
    read = [types[name] for n in ours for name in n.input]
    assert HALF not in read
    check_clean(made)
    # Pooling between two layers sums in fp32.
    assert [pair for pair in casts(made) if pair[0] == "network/r"] == [("network/r", "tricade/fp32/network/r")]
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 12, 3), np.uint8)
    expected, found = Runtime(plain.model).run({"CROPS": pixels}), Runtime(made.model).run({"CROPS": pixels})
    np.testing.assert_allclose(found["SCORE"], expected["SCORE"], atol=2e-3)
    np.testing.assert_array_equal(found["INDEX"], expected["INDEX"])


def test_what_follows_the_last_layer_is_fp32() -> None:
    """A decoding that is part of the user's file costs nothing in fp32, and 640.25 is no number of fp16."""
    made = half(node("Relu", ["a"], ["z"]))

    types = types_of(made.model)
    assert (types["network/last"], types["network/mean"], types["network/y"]) == (HALF, FULL, FULL)
    assert casts(made)[-1] == ("network/last", "tricade/fp32/network/last")


@pytest.mark.parametrize("names", [("", ""), ("z", "b"), ("tricade/front/0", "tricade/0/Softmax")])
def test_names_that_are_missing_or_mislead(names: tuple[str, str]) -> None:
    one, two = names

    made = half(node("Sigmoid", ["a"], ["b"], name=one), node("Tanh", ["b"], ["z"], name=two))

    assert precision_of(made, "Sigmoid") == precision_of(made, "Tanh") == {"fp16"}
    check_clean(made)


def test_a_decomposed_layer_norm_is_fp32_as_a_whole_and_costs_two_casts() -> None:
    eps = {"two": np.array(2, np.float32), "eps": np.array(1e-5, np.float32), "gain": np.ones((1, 4, 1, 1), np.float32)}
    middle = [
        node("Mul", ["a", "many"], ["b"]),
        node("ReduceMean", ["b"], ["mean of b"], axes=[1]),
        node("Sub", ["b", "mean of b"], ["d"]),
        node("Pow", ["d", "two"], ["square"]),
        node("ReduceMean", ["square"], ["variance"], axes=[1]),
        node("Add", ["variance", "eps"], ["v+"]),
        node("Sqrt", ["v+"], ["deviation"]),
        node("Div", ["d", "deviation"], ["n"]),
        node("Mul", ["n", "gain"], ["z"]),
    ]
    constants = {**eps, "many": np.array(2000, np.float32)}

    made = half(*middle, constants=constants)

    for op in ("ReduceMean", "Sub", "Pow", "Sqrt", "Div"):
        assert precision_of(made, op) == {"fp32"}, op
    inside = [source for source, _ in casts(made) if source.startswith("network/")]
    assert inside == ["network/b", "network/n", "network/last"]
    check_clean(made)
    bright = np.full((1, 8, 12, 3), 255, np.uint8)
    plain = Runtime(folded(network(*middle, constants=constants)).model).run({"CROPS": bright})
    found = Runtime(simulated(made.model)).run({"CROPS": bright})
    np.testing.assert_allclose(found["SCORE"], plain["SCORE"], atol=1e-3)


def test_softmax_and_what_lies_between_two_of_fp32() -> None:
    middle = [
        node("Softmax", ["a"], ["s"], axis=1),
        node("Mul", ["s", "third"], ["m"]),
        node("Log", ["m"], ["l"]),
        node("Relu", ["l"], ["z"]),
    ]

    made = half(*middle, constants={"third": np.array(1 / 3, np.float32)})

    assert precision_of(made, "Mul") == {"fp32"}
    assert precision_of(made, "Relu") == {"fp16"}
    assert [source for source, _ in casts(made)][2:4] == ["network/a", "network/l"]
    constants = {c.name: numpy_helper.to_array(c) for c in made.model.graph.initializer}
    assert constants["network/third"] == np.float32(1 / 3)
    check_clean(made)


def test_a_constant_that_both_read_is_there_in_both() -> None:
    made = half(
        node("Relu", ["a"], ["r"]),
        node("Mul", ["r", "third"], ["b"], name="half"),
        node("Mul", ["b", "third"], ["z"], name="full"),
        constants={"third": np.full((1, 4, 1, 1), 1 / 3, np.float32)},
        keep=["full"],
    )
    values = {c.name: numpy_helper.to_array(c).flat[0] for c in made.model.graph.initializer if "third" in c.name}
    assert values == {"network/third": np.float32(1 / 3), "tricade/fp16/network/third": np.float16(1 / 3)}
    check_clean(made)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_scales_and_regions_of_a_resize_stay(opset: int) -> None:
    scales = np.array([1, 1, 2, 2], np.float32)
    resize = node("Resize", ["a", "roi", "scales"], ["z"], mode="nearest", name="up")

    made = half(resize, constants={"scales": scales, "roi": np.zeros(0, np.float32)}, opset=opset)

    types = types_of(made.model)
    assert types["network/scales"] == types["network/roi"] == FULL
    assert types["network/z"] == HALF
    check_clean(made)


def test_a_size_that_is_computed_in_fp32_stays_exact() -> None:
    """2049 is no number of fp16."""
    middle = [
        node("Shape", ["a"], ["shape"]),
        node("Cast", ["shape"], ["floats"], to=FULL),
        node("Mul", ["floats", "many"], ["more"]),
        node("Div", ["more", "many"], ["less"]),
        node("Cast", ["less"], ["whole"], to=TensorProto.INT64),
        node("Reshape", ["a", "whole"], ["z"]),
    ]

    made = half(*middle, constants={"many": np.array(683, np.float32)})

    assert precision_of(made, "Mul") == precision_of(made, "Div") == {"fp32"}
    assert precision_of(made, "Reshape") == precision_of(made, "Shape") == {"fp16"}
    check_clean(made)


def test_branches_stay_and_get_what_they_take_in_fp32() -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(name, FULL, None)
        return helper.make_graph([node(op, ["b"], [name])], name, [], [out])

    middle = [
        node("Sigmoid", ["a"], ["b"]),
        node("If", ["yes"], ["c"], then_branch=branch("t", "Relu"), else_branch=branch("e", "Neg")),
        node("Mul", ["b", "c"], ["z"]),
    ]

    made = half(*middle, constants={"yes": np.array(True)})

    (choice,) = [n for n in made.model.graph.node if n.op_type == "If"]
    (inner,) = helper.get_node_attr_value(choice, "then_branch").node
    assert list(inner.input) == ["tricade/fp32/network/b"]
    assert types_of(made.model)["network/c"] == FULL
    assert precision_of(made, "Mul") == {"fp16"}
    check_clean(made)


def test_a_network_that_is_fp16_already() -> None:
    plain = folded(graphs.pooled_linear(dtype=HALF))

    made = half_from(plain)

    types = types_of(made.model)
    # As if it had been exported in fp32; only sums are taken out.
    assert {name: types[name] for name in ("network/x", "network/w", "network/r", "network/g", "network/m")} == {
        "network/x": HALF, "network/w": HALF, "network/r": HALF, "network/g": FULL, "network/m": HALF
    }  # fmt: skip
    check_clean(made)


def test_a_network_that_is_fp16_in_part_is_not_cast_for_nothing() -> None:
    """As exports by half go: the weights in fp16 and cast to fp32, a stretch in fp16, a stretch in fp32."""
    middle = [
        node("Cast", ["gain16"], ["gain"], to=FULL),
        node("Cast", ["a"], ["a16"], to=HALF),
        node("Relu", ["a16"], ["r16"]),
        node("Cast", ["r16"], ["r"], to=FULL),
        node("Mul", ["r", "gain"], ["m"]),
        node("Cast", ["m"], ["m16"], to=HALF),
        node("Cast", ["m16"], ["n"], to=FULL),
        node("Exp", ["n"], ["z"]),
    ]

    made = half(*middle, constants={"gain16": np.full((1, 4, 1, 1), 0.5, np.float16)})

    inside = [source for source, _ in casts(made) if source.startswith("network/")]
    assert inside == ["network/m", "network/z", "network/last"]
    check_clean(made)


def test_what_quantizes_and_what_it_feeds_is_left_alone() -> None:
    middle = [
        node("QuantizeLinear", ["a", "scale", "zero8"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero8"], ["d"]),
        node("Conv", ["d", "square"], ["z"], name="int8"),
    ]
    constants = {"scale": np.array(1e-6, np.float32), "zero8": np.array(0, np.int8)}

    made = half(*middle, constants={**constants, "square": np.ones((4, 4, 1, 1), np.float32)})

    types = types_of(made.model)
    assert types["network/scale"] == types["network/d"] == types["network/square"] == FULL
    assert types["network/w"] == types["network/v"] == HALF


@pytest.mark.parametrize(
    ("value", "precision"),
    [
        (1e-5, "fp32"),
        (1e-12, "fp32"),
        (-1e9, "fp32"),
        (40000.0, "fp32"),
        (0.0, "fp16"),
        (-np.inf, "fp16"),
        (3.0, "fp16"),
    ],
)
def test_a_constant_that_fp16_does_not_hold(value: float, precision: str) -> None:
    middle = [node("Relu", ["a"], ["r"]), node("Max", ["r", "c"], ["z"])]

    made = half(*middle, constants={"c": np.array(value, np.float32)})

    assert precision_of(made, "Max") == {precision}


def test_patterns_keep_nodes_of_the_users_file() -> None:
    middle = [
        node("Relu", ["a"], ["b"], name="/model.1/act[0]/Relu"),
        node("Sigmoid", ["b"], ["c"]),
        node("Tanh", ["c"], ["z"], name="/model.2/act/Tanh"),
    ]

    assert precision_of(half(*middle, keep=["/model.1/*"]), "Relu") == {"fp32"}
    assert precision_of(half(*middle, keep=["/model.1/act[0]/Relu"]), "Relu") == {"fp32"}
    # A node without a name is called by what it makes.
    assert precision_of(half(*middle, keep=["c"]), "Sigmoid") == {"fp32"}
    made = half(*middle, keep=["*"])
    assert {types_of(made.model)[name] for n in made.model.graph.node for name in n.output} & {HALF} == set()
    with pytest.raises(FoldError, match=r"got '/model.3/\*', which none .* near it are /model.2/act/Tanh"):
        half(*middle, keep=["/model.3/*"])
    with pytest.raises(FoldError, match="got 'tricade/front/0/Cast'"):
        half(*middle, keep=["tricade/front/0/Cast"])


def test_a_node_that_went_into_a_convolution_keeps_that() -> None:
    constants = {name: np.full(4, value, np.float32) for name, value in (("g", 2), ("s", 3), ("m", 4), ("d", 1e-9))}
    norm = node("BatchNormalization", ["a", "g", "s", "m", "d"], ["n"], name="bn")
    relu = node("Relu", ["n"], ["z"])

    assert precision_of(half(norm, relu, constants=constants), "Conv") == {"fp16"}
    made = half(norm, relu, constants=constants, keep=["bn"])
    first = next(n for n in made.model.graph.node if n.name == "network/first")
    assert types_of(made.model)[first.input[0]] == FULL


SQUASH = (node("Mul", ["a", "many"], ["b"]), node("Relu", ["b"], ["r"]), node("Mul", ["r", "few"], ["z"]))
FACTORS = {"many": np.full((1, 4, 1, 1), 4e5, np.float32), "few": np.full((1, 4, 1, 1), 2e-6, np.float32)}


def test_numbers_that_outgrow_fp16_stay_in_fp32_where_they_were_measured() -> None:
    plain = folded(
        model_of([node("Conv", ["x", "w"], ["c"]), node("Relu", ["c"], ["a"]), *SQUASH, *TAIL], {**WEIGHTS, **FACTORS})
    )
    pixels = {"CROPS": np.random.default_rng(0).integers(0, 256, (2, 8, 12, 3), np.uint8)}
    expected = Runtime(plain.model).run(pixels)["SCORE"]

    blind = Runtime(simulated(half_from(plain).model)).run(pixels)["SCORE"]
    largest = largest_of(plain.model, [pixels])
    made = half_from(plain, largest=largest)
    found = Runtime(simulated(made.model)).run(pixels)["SCORE"]

    assert largest["network/b"] > 65504
    assert not np.isfinite(blind).all()
    np.testing.assert_allclose(found, expected, atol=1e-3)
    types = types_of(made.model)
    assert (types["network/a"], types["network/b"], types["network/r"], types["network/z"]) == (HALF, FULL, FULL, FULL)


@pytest.mark.parametrize(
    ("size", "precision"), [(32752.0, "fp16"), (32753.0, "fp32"), (np.inf, "fp32"), (np.nan, "fp32")]
)
def test_there_is_a_margin_of_two(size: float, precision: str) -> None:
    made = half(node("Relu", ["a"], ["b"]), node("Tanh", ["b"], ["z"]), largest={"network/z": size})

    assert precision_of(made, "Tanh") == {precision}


@pytest.mark.parametrize(("widths", "shapes"), [((), []), ((16,), [16]), ((16, 24, 32), [16, 32])])
def test_an_open_width_is_proven_at_its_ends(
    widths: tuple[int, ...], shapes: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = folded(graphs.pooled_linear(), widths=(16, 32))
    proven: list[Any] = []
    monkeypatch.setattr("tricade_build.half.prove", lambda model, dims, inputs: proven.extend(inputs))

    half_from(plain, widths=widths)

    assert proven == [(1, 8, width, 3) for width in shapes]


def test_the_largest_of_each_tensor_by_hand() -> None:
    x = helper.make_tensor_value_info("x", FULL, ["n", 2])
    nodes = [
        node("Neg", ["x"], ["minus"]),
        node("Reshape", ["minus", "flat"], ["row"]),
        node("Slice", ["row", "zero", "zero"], ["nothing"]),
        node("Log", ["x"], ["log"]),
        node("Cast", ["row"], ["half"], to=HALF),
        node("Cast", ["row"], ["whole"], to=TensorProto.INT64),
        node("Constant", [], ["one"], value=numpy_helper.from_array(np.array([99], np.float32))),
        node("Add", ["row", "one"], ["y"]),
    ]
    constants = {"flat": np.array([-1]), "zero": np.array([0])}
    graph = helper.make_graph(
        nodes,
        "test",
        [x],
        [
            helper.make_tensor_value_info("y", FULL, None),
            helper.make_tensor_value_info("whole", TensorProto.INT64, None),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    inputs = [{"x": np.array([[3, -5]], np.float32)}, {"x": np.array([[1, 2], [0, 4]], np.float32)}]

    found = largest_of(model, inputs)

    assert found == {"minus": 5.0, "row": 5.0, "nothing": 0.0, "log": np.inf, "half": 5.0, "y": 104.0}
    assert largest_of(model, []) == dict.fromkeys(found, 0.0)
    assert [value.name for value in model.graph.output] == ["y", "whole"]


@pytest.mark.parametrize(
    "ends",
    [
        [node("Identity", ["e"], ["y"])],
        [node("Cast", ["e"], ["y"], to=HALF)],
        [node("Cast", ["e"], ["e16"], to=HALF), node("Cast", ["e16"], ["y"], to=FULL)],
        [node("MatMul", ["e", "m"], ["y"])],
    ],
)
def test_what_the_network_answers_is_found_under_its_name(ends: Sequence[onnx.NodeProto]) -> None:
    nodes = [node("Conv", ["x", "w"], ["c"]), node("GlobalAveragePool", ["c"], ["p"]), node("Flatten", ["p"], ["e"])]
    model = model_of([*nodes, *ends], {**WEIGHTS, "m": np.eye(4, dtype=np.float32)})
    model.graph.output[0].type.tensor_type.elem_type = HALF if ends[-1] == node("Cast", ["e"], ["y"], to=HALF) else FULL

    made = half_from(folded(model))

    assert made.raw == ("network/y",)
    assert "network/y" in {out for n in made.model.graph.node for out in n.output}
