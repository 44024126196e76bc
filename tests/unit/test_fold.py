"""`tricade_build.fold`: the folded graph against the plain one with numpy around it."""

from __future__ import annotations

from functools import partial
from typing import Any

import graphs
import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tricade.stage import Tensor
from tricade_build.errors import FoldError
from tricade_build.fold import Folded, Front, fold
from tricade_build.heads import HEADS, Want
from tricade_build.runtime import newest
from tricade_build.spec import Normalize

PLAIN = Normalize(mean=(0, 0, 0), std=(1, 1, 1))
UNIT = Normalize()
IMAGENET_BGR = Normalize(colour="bgr", mean=(103.53, 116.28, 123.675), std=(57.375, 57.12, 58.395))


def folded(
    model: onnx.ModelProto,
    *,
    head: str = "softmax",
    size: tuple[int, int] = (8, 12),
    widths: tuple[int, ...] = (),
    normalize: Normalize = UNIT,
    top_k: int = 1,
    single: bool = False,
) -> Folded:
    end = partial(_end, head=head, want=Want(top_k, any_width=bool(widths)))
    return fold(model, Front("CROPS", size, widths, normalize, single=single), end)


def _end(nodes: Any, raw: Any, *, head: str, want: Want) -> Any:
    return HEADS[head].end(nodes, raw, want)


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("normalize", [PLAIN, UNIT, IMAGENET_BGR], ids=["nothing", "unit", "imagenet bgr"])
@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("batch", [1, 3])
def test_agrees_with_numpy_around_the_plain_graph(normalize: Normalize, opset: int, batch: int) -> None:
    model = graphs.pooled_linear(opset=opset)
    pixels = np.random.default_rng(batch).integers(0, 256, (batch, 8, 12, 3), np.uint8)

    found = graphs.run(folded(model, normalize=normalize, top_k=5).model, pixels)

    ordered = pixels[..., ::-1] if normalize.colour == "bgr" else pixels
    value = (ordered.astype(np.float32) - np.float32(normalize.mean)) / np.float32(normalize.std)
    scores = softmax(graphs.run(model, value.transpose(0, 3, 1, 2))["y"])
    order = np.argsort(-scores, axis=1)
    np.testing.assert_array_equal(found["INDEX"], order)
    np.testing.assert_allclose(found["SCORE"], np.take_along_axis(scores, order, 1), rtol=1e-4, atol=1e-6)


def test_a_half_precision_network_gets_half_precision_and_answers_in_single() -> None:
    model = graphs.pooled_linear(dtype=TensorProto.FLOAT16)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 8, 12, 3), np.uint8)

    found = graphs.run(folded(model).model, pixels)

    value = (pixels.astype(np.float32) / 255).astype(np.float16).transpose(0, 3, 1, 2)
    scores = softmax(graphs.run(model, value)["y"].astype(np.float32))
    assert found["SCORE"].dtype == np.float32
    np.testing.assert_allclose(found["SCORE"][:, 0], scores.max(1), rtol=1e-2)


def test_every_open_dimension_has_a_name_of_its_own() -> None:
    model = graphs.model_of(
        [
            graphs.node("ReduceMean", ["x"], ["m"], axes=[2], keepdims=0),
            graphs.node("Transpose", ["m"], ["y"], perm=[0, 2, 1]),
        ],
        entry=("?", 3, 8, "?"),
    )

    made = folded(model, head="ctc", size=(8, 16), widths=(16, 32))

    names = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*made.model.graph.input, *made.model.graph.output)
    }
    assert names == {"CROPS": ["batch", 8, "width", 3], "INDEX": ["batch", "steps"], "SCORE": ["batch", "steps"]}
    assert made.shapes.input == Tensor("CROPS", "UINT8", (8, -1, 3))
    assert made.shapes.outputs == (Tensor("INDEX", "INT32", (-1,)), Tensor("SCORE", "FP32", (-1,)))
    assert graphs.run(made.model, np.zeros((2, 8, 24, 3), np.uint8))["INDEX"].shape == (2, 24)


@pytest.mark.parametrize(
    "model",
    [
        graphs.pooled_linear(opset=11, ir=3, listed=True),
        graphs.pooled_linear(entry=(-1, 3, 8, 12)),
        graphs.pooled_linear(entry=("?", 3, "?", "?")),
        graphs.pooled_linear(entry=("n", "c", "h", "w")),
    ],
    ids=["constants as inputs", "-1", "one name for all", "open channels"],
)
def test_takes_what_exporters_write(model: onnx.ModelProto) -> None:
    found = graphs.run(folded(model).model, np.zeros((2, 8, 12, 3), np.uint8))

    assert {name: value.shape for name, value in found.items()} == {"INDEX": (2, 1), "SCORE": (2, 1)}


def test_names_that_the_network_uses_too_do_not_meet_ours() -> None:
    model = graphs.model_of(
        [graphs.node("GlobalAveragePool", ["x"], ["SCORE"]), graphs.node("Flatten", ["SCORE"], ["INDEX"], axis=1)]
    )

    assert [output.name for output in folded(model).model.graph.output] == ["INDEX", "SCORE"]


def test_leaves_the_source_as_it_is() -> None:
    model = graphs.pooled_linear()
    before = model.SerializeToString()

    folded(model)

    assert model.SerializeToString() == before


FIXED_INSIDE = graphs.model_of(
    [graphs.node("GlobalAveragePool", ["x"], ["g"]), graphs.node("Reshape", ["g", "s"], ["y"])],
    {"s": np.array([1, 3], np.int64)},
)
TWO_OUTPUTS = graphs.pooled_linear()
TWO_OUTPUTS.graph.output.append(onnx.helper.make_tensor_value_info("f", TensorProto.FLOAT, None))

TWO_INPUTS = graphs.pooled_linear()
TWO_INPUTS.graph.input.append(onnx.helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["n", 8, 12]))
UNKNOWN_OPERATOR = graphs.model_of([graphs.node("Fold", ["x"], ["y"])])


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (graphs.pooled_linear(entry=(1, 3, 8, 12)), r"dynamic batch, found input x of shape \[1, 3, 8, 12\]"),
        (
            graphs.pooled_linear(entry=("n", 3, 640, 640)),
            r"`size` \[8, 12\], found input x of shape \['\?', 3, 640, 640\]",
        ),
        (graphs.pooled_linear(entry=("n", 1, 8, 12)), r"\[batch, 3, height, width\], found input x"),
        (graphs.pooled_linear(entry=("n", 8, 12, 3)), r"\[batch, 3, height, width\], found input x"),
        (FIXED_INSIDE, r"runs with an input of shape \[2, 3, 8, 12\].*dynamic batch"),
        (TWO_OUTPUTS, r"found y \[M, 5\], f \[M, 7\]; several fit: export only the one that is meant"),
        (TWO_INPUTS, "expected one input, found x, mask; export"),
        (graphs.pooled_linear(opset=9), rf"opset 11 to {newest().opset}, which ONNX Runtime [0-9.]+ runs, found 9;"),
        (graphs.pooled_linear(opset=newest().opset + 1), rf"opset 11 to {newest().opset}, which .*opset 17"),
        (graphs.pooled_linear(ir=newest().ir + 1), f"IR version {newest().ir} or older, .*found {newest().ir + 1};"),
        (UNKNOWN_OPERATOR, "expected a graph that ONNX Runtime loads; .*Fold"),
    ],
)
def test_refuses_what_cannot_be_served(model: onnx.ModelProto, said: str) -> None:
    with pytest.raises(FoldError, match=said):
        folded(model)


def test_refuses_widths_where_the_network_has_one() -> None:
    with pytest.raises(FoldError, match="dynamic width"):
        folded(graphs.pooled_linear(entry=("n", 3, 8, 16)), size=(8, 16), widths=(16, 32))


SINGLE = {
    "static": graphs.pooled_linear(entry=(1, 3, 8, 12)),
    "fixed inside": FIXED_INSIDE,
    "dynamic": graphs.pooled_linear(),
}


@pytest.mark.parametrize("kind", SINGLE)
def test_a_batch_of_one_may_be_fixed_and_is_open_at_the_border(kind: str) -> None:
    made = folded(SINGLE[kind], single=True, top_k=2)

    for value in (*made.model.graph.input, *made.model.graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch"
    inferred = onnx.shape_inference.infer_shapes(made.model, strict_mode=True, data_prop=True)
    assert [dim.dim_value for dim in inferred.graph.output[0].type.tensor_type.shape.dim][1:] == [2]
    pixels = np.random.default_rng(0).integers(0, 256, (1, 8, 12, 3), np.uint8)
    found = graphs.run(made.model, pixels)
    assert {name: value.shape for name, value in found.items()} == {"INDEX": (1, 2), "SCORE": (1, 2)}
    if kind == "dynamic":
        np.testing.assert_array_equal(found["INDEX"], graphs.run(folded(SINGLE[kind], top_k=2).model, pixels)["INDEX"])


@pytest.mark.parametrize(
    ("entry", "single", "said"),
    [
        ((1, 3, 8, 12), False, "expected a dynamic batch, .* or set `max_batch` to 1"),
        ((4, 3, 8, 12), True, r"expected a dynamic batch, found input x of shape \[4, 3, 8, 12\]; export it again"),
    ],
)
def test_says_what_to_do_about_a_fixed_batch(entry: tuple[int, ...], single: bool, said: str) -> None:
    with pytest.raises(FoldError, match=said):
        folded(graphs.pooled_linear(entry=entry), single=single)


def test_outputs_that_nobody_reads_and_what_they_need_are_left_out() -> None:
    both = graphs.model_of(
        [
            graphs.node("GlobalAveragePool", ["x"], ["g"]),
            graphs.node("Mul", ["x", "heavy"], ["beside"]),
            graphs.node("Flatten", ["g"], ["y"], axis=1),
        ],
        {"heavy": np.ones((1, 3, 8, 12), np.float32)},
    )
    both.graph.output.append(onnx.helper.make_tensor_value_info("beside", TensorProto.FLOAT, None))

    made = folded(both)

    assert not any("heavy" in constant.name for constant in made.model.graph.initializer)
    assert "network/beside" not in {out for node in made.model.graph.node for out in node.output}


def test_what_a_branch_reads_from_outside_stays() -> None:
    branch = onnx.helper.make_graph(
        [graphs.node("Add", ["f", "five"], ["b"])], "b", [], [onnx.helper.make_empty_tensor_value_info("b")]
    )
    model = graphs.model_of(
        [
            graphs.node("GlobalAveragePool", ["x"], ["g"]),
            graphs.node("Flatten", ["g"], ["f"], axis=1),
            graphs.node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch),
        ],
        {"yes": np.array(True), "five": np.array([0, 5, 0], np.float32)},
    )

    assert graphs.run(folded(model).model, np.zeros((2, 8, 12, 3), np.uint8))["INDEX"].tolist() == [[1], [1]]


def test_functions_of_the_graph_are_written_out() -> None:
    function = onnx.helper.make_function(
        "local", "Shift", ["a"], ["b"], [graphs.node("Add", ["a", "a"], ["b"])], [onnx.helper.make_opsetid("", 18)]
    )
    model = graphs.model_of(
        [
            graphs.node("GlobalAveragePool", ["x"], ["g"]),
            graphs.node("Flatten", ["g"], ["f"], axis=1),
            graphs.node("Shift", ["f"], ["y"], domain="local"),
        ],
        opset=18,
    )
    model.opset_import.append(onnx.helper.make_opsetid("local", 1))
    model.functions.append(function)

    assert len(graphs.run(folded(model).model, np.zeros((2, 8, 12, 3), np.uint8))["INDEX"]) == 2
