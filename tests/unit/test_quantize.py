"""`tricade_build.quantize`: Q/DQ where it belongs, with the scales that the samples give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cascade
import graphs
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tricade_build.calibrate import MAX_ROWS, rows_of
from tricade_build.errors import FoldError, SampleError
from tricade_build.fold import Folded, Front, fold
from tricade_build.heads import HEADS, Want
from tricade_build.networks import job_of
from tricade_build.quantize import quantized_from
from tricade_build.samples import Sample
from tricade_build.spec import Normalize
from tricade_build.spec_file import pipeline_from_file
from tricade_build.weights import unheard

node = graphs.node
UNIT = Normalize()
SIZE = (8, 12)
C = 16  # channels: the fewest that int8 is used for


def weights(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    spread = np.sqrt(2 / np.prod(shape[1:]))
    return np.random.default_rng(seed + sum(shape)).normal(0, spread, shape).astype(np.float32)


def network(*, opset: int = 13, names: bool = True, **constants: NDArray[Any]) -> onnx.ModelProto:
    """stem → one → batch norm → two, the first two also added up → pooled → hidden → logits."""
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["t0"], name="stem", pads=[1, 1, 1, 1]),
        node("Relu", ["t0"], ["r0"], name="act"),
        node("Conv", ["r0", "w1"], ["t1"], name="body/one", pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["t1", "gamma", "beta", "mean", "variance"], ["n1"], name="body/norm"),
        node("Relu", ["n1"], ["r1"], name="body/act"),
        node("ConvTranspose", ["r1", "w2", "b2"], ["t2"], name="body/two", pads=[1, 1, 1, 1]),
        node("Add", ["t2", "r0"], ["sum"], name="body/add"),
        node("GlobalAveragePool", ["sum"], ["mean of all"], name="pool"),
        node("Flatten", ["mean of all"], ["flat"], axis=1, name="flatten"),
        node("Gemm", ["flat", "w3", "b3"], ["t3"], transB=1, name="head/hidden"),
        node("Relu", ["t3"], ["r3"], name="head/act"),
        node("MatMul", ["r3", "w4"], ["y"], name="head/logits"),
    ]
    if not names:
        for each in nodes:
            each.ClearField("name")
    made = {
        "w0": weights(C, 3, 3, 3),
        "b0": weights(C, seed=1),
        "w1": weights(C, C, 3, 3),
        "gamma": np.linspace(0.5, 2, C, dtype=np.float32),
        "beta": weights(C, seed=2),
        "mean": weights(C, seed=3),
        "variance": np.linspace(0.1, 3, C, dtype=np.float32),
        "w2": weights(C, C, 3, 3, seed=4),
        "b2": weights(C, seed=5),
        "w3": weights(2 * C, C),
        "b3": weights(2 * C, seed=6),
        "w4": weights(2 * C, 5),
    }
    return graphs.model_of(nodes, made | constants, opset=opset)


def folded(model: onnx.ModelProto, *, normalize: Normalize = UNIT, single: bool = False) -> Folded:
    def end(nodes: Any, answer: Any) -> Any:
        return HEADS["softmax"].end(nodes, answer, Want(5, any_width=False))

    return fold(model, Front("CROPS", SIZE, (), normalize, single=single), end)


def samples(*batches: int, seed: int = 0, size: tuple[int, int] = SIZE) -> list[Sample]:
    random = np.random.default_rng(seed)
    crops = random.integers(0, 256, (sum(batches), *size, 3), np.uint8)
    parts = np.split(crops, np.cumsum(batches)[:-1])
    return [Sample(f"{place}.jpg", {"CROPS": part}) for place, part in enumerate(parts)]


def quantized(
    made: Folded, given: Sequence[Sample] | None = None, *, method: str = "minmax", keep: Sequence[str] = ()
) -> Folded:
    return quantized_from(made, given or samples(3, 5), method=method, keep=keep, report=unheard)


def constants_of(model: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    return {constant.name: numpy_helper.to_array(constant) for constant in model.graph.initializer}


def in_int8(made: Folded) -> set[str]:
    """The names, as the file has them, of the nodes that read what has been through int8."""
    behind = {each.output[0] for each in made.model.graph.node if each.op_type == "DequantizeLinear"}
    return {each.name.removeprefix("network/") for each in made.model.graph.node if not behind.isdisjoint(each.input)}


def pair_before(made: Folded, name: str, place: int) -> tuple[str, NDArray[Any], NDArray[Any], int]:
    """What a node's input was before Q/DQ; scale, zero point and axis of the pair, -1 for none."""
    makers = {out: each for each in made.model.graph.node for out in each.output}
    reader = next(each for each in made.model.graph.node if each.name == f"network/{name}")
    dequantize = makers[reader.input[place]]
    quantize = makers[dequantize.input[0]]
    assert (quantize.op_type, dequantize.op_type) == ("QuantizeLinear", "DequantizeLinear")
    assert quantize.input[1:] == dequantize.input[1:]
    assert quantize.attribute == dequantize.attribute
    values = constants_of(made.model)
    axis = helper.get_attribute_value(quantize.attribute[0]) if quantize.attribute else -1
    return quantize.input[0], values[quantize.input[1]], values[quantize.input[2]], axis


def tensors(made: Folded, given: Sequence[Sample], name: str) -> NDArray[np.float32]:
    """What an FP32 tensor of the folded graph holds for all samples."""
    model = onnx.ModelProto()
    model.CopyFrom(made.model)
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    return np.concatenate([graphs.run(model, sample.inputs["CROPS"])[name] for sample in given])


def test_layers_between_the_first_and_the_last_are_in_int8() -> None:
    assert in_int8(quantized(folded(network()))) == {"body/one", "body/two", "head/hidden"}


@pytest.mark.parametrize(
    ("name", "entry"), [("body/one", "network/r0"), ("body/two", "network/r1"), ("head/hidden", "network/flat")]
)
def test_scales_of_minmax_are_the_largest_magnitude_over_127(name: str, entry: str) -> None:
    given, before = samples(2, 1, 4), folded(network())
    tensor, scale, zero, axis = pair_before(quantized(before, given), name, 0)
    assert tensor == entry
    assert scale == pytest.approx(np.abs(tensors(before, given, entry)).max() / 127, rel=1e-6)
    assert (zero.dtype, zero.shape, int(zero), axis) == (np.int8, (), 0, -1)


def normed() -> NDArray[np.float32]:
    """w1 with the batch norm in it."""
    values = constants_of(network())
    return values["w1"] * (values["gamma"] / np.sqrt(values["variance"] + 1e-5))[:, None, None, None]


@pytest.mark.parametrize(
    ("name", "weight", "channel"),
    [
        ("body/one", normed(), 0),
        ("body/two", constants_of(network())["w2"], 1),
        ("head/hidden", constants_of(network())["w3"], 0),
    ],
)
def test_weights_have_a_scale_for_each_channel(name: str, weight: NDArray[np.float32], channel: int) -> None:
    made = quantized(folded(network()))
    tensor, scale, zero, axis = pair_before(made, name, 1)
    np.testing.assert_allclose(constants_of(made.model)[tensor], weight, rtol=1e-6)
    others = tuple(place for place in range(weight.ndim) if place != channel)
    np.testing.assert_allclose(scale, np.abs(weight).max(axis=others) / 127, rtol=1e-6)
    assert (zero.dtype, axis) == (np.int8, channel)
    assert not zero.any()


def test_biases_stay_as_they_are() -> None:
    made = quantized(folded(network()))
    values = constants_of(made.model)
    for name, bias in (("body/two", "b2"), ("head/hidden", "b3")):
        reader = next(each for each in made.model.graph.node if each.name == f"network/{name}")
        np.testing.assert_array_equal(values[reader.input[2]], constants_of(network())[bias])


def test_answers_are_those_of_rounding_by_hand() -> None:
    """Three matrices, the middle one in int8."""
    first, last = weights(3, C), weights(C, 5)
    middle = np.eye(C, dtype=np.float32) + 0.1 * weights(C, C)
    nodes = [
        node("GlobalAveragePool", ["x"], ["g"]),
        node("Flatten", ["g"], ["f"], axis=1),
        node("MatMul", ["f", "first"], ["a"]),
        node("MatMul", ["a", "middle"], ["b"]),
        node("MatMul", ["b", "last"], ["y"]),
    ]
    model = graphs.model_of(nodes, {"first": first, "middle": middle, "last": last})
    given = samples(4, 4)
    made = quantized(folded(model), given)
    assert in_int8(made) == {"b"}

    crops = np.concatenate([sample.inputs["CROPS"] for sample in given])
    value = (crops / 255).mean(axis=(1, 2)) @ first
    step, steps = np.abs(value).max() / 127, np.abs(middle).max(axis=0) / 127
    answer = (np.round(value / step) @ np.round(middle / steps) * step * steps) @ last
    np.testing.assert_allclose(tensors(made, given, "network/y"), answer, atol=1e-4)


def test_what_else_reads_a_tensor_reads_it_unrounded() -> None:
    made = quantized(folded(network()))
    add = next(each for each in made.model.graph.node if each.name == "network/body/add")
    assert add.input == ["network/t2", "network/r0"]


def test_each_layer_has_a_pair_of_its_own() -> None:
    nodes = [
        node("Conv", ["x", "w0"], ["t0"], name="stem"),
        node("Conv", ["t0", "w"], ["t1"], name="left"),
        node("Conv", ["t0", "w"], ["t2"], name="right"),
        node("Sub", ["t0", "t1"], ["s"], name="sub"),
        node("Add", ["s", "t2"], ["sum"], name="add"),
        node("GlobalAveragePool", ["sum"], ["g"], name="pool"),
        node("Flatten", ["g"], ["f"], axis=1, name="flat"),
        node("MatMul", ["f", "w9"], ["y"], name="logits"),
    ]
    constants = {"w0": weights(C, 3, 1, 1), "w": weights(C, C, 1, 1), "w9": weights(C, 5)}
    made = quantized(folded(graphs.model_of(nodes, constants)))
    inputs = {each.name: each.input for each in made.model.graph.node}
    assert in_int8(made) == {"left", "right"}
    assert inputs["network/left"][0] != inputs["network/right"][0]
    assert inputs["network/sub"] == ["network/t0", "network/t1"]


def test_a_branch_that_reads_a_tensor_stays_behind_it() -> None:
    def branch(op: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(f"of {op}", TensorProto.FLOAT, None)
        return helper.make_graph([node(op, ["t1"], [out.name])], op, [], [out])

    nodes = [
        node("Conv", ["x", "w0"], ["t0"], name="stem"),
        node("Conv", ["t0", "w"], ["t1"], name="body"),
        node("If", ["always"], ["t2"], name="if", then_branch=branch("Relu"), else_branch=branch("Abs")),
        node("Conv", ["t2", "w"], ["t3"], name="more"),
        node("GlobalAveragePool", ["t3"], ["g"], name="pool"),
        node("Flatten", ["g"], ["f"], axis=1, name="flat"),
        node("MatMul", ["f", "w9"], ["y"], name="logits"),
    ]
    constants = {"w0": weights(C, 3, 1, 1), "w": weights(C, C, 1, 1), "w9": weights(C, 5), "always": np.array(True)}
    before = folded(graphs.model_of(nodes, constants))
    made = quantized(before)
    assert in_int8(made) == {"body", "more"}
    order = [each.name for each in made.model.graph.node if not each.op_type.endswith("Linear")]
    assert order == [each.name for each in before.model.graph.node]


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        (["body/one"], {"body/two", "head/hidden"}),
        (["body/norm"], {"body/two", "head/hidden"}),  # it is in body/one by then
        (["body/*"], {"head/hidden"}),
        (["stem", "*/act"], {"body/one", "body/two", "head/hidden"}),
    ],
)
def test_nodes_that_are_kept(keep: list[str], left: set[str]) -> None:
    assert in_int8(quantized(folded(network()), keep=keep)) == left


def test_nodes_without_names_are_kept_by_their_outputs() -> None:
    before = folded(network(names=False))
    assert in_int8(quantized(before)) == {"t1", "t2", "t3"}
    assert in_int8(quantized(before, keep=["t2"])) == {"t1", "t3"}
    with pytest.raises(FoldError, match="near it are"):
        quantized(before, keep=["t22"])


def test_front_and_decoding_stay_as_they_are() -> None:
    before = folded(network(), normalize=Normalize(colour="bgr", mean=(1, 2, 3), std=(4, 5, 6)))
    made = quantized(before)
    ours = [
        {each.name: each for each in each_made.model.graph.node if each.name.startswith("tricade/")}
        for each_made in (before, made)
    ]
    assert ours[0] == ours[1]
    assert (made.shapes, made.raw) == (before.shapes, before.raw)
    assert made.model.graph.input == before.model.graph.input
    assert made.model.graph.output == before.model.graph.output
    assert made.raw == ("network/y",)
    assert any("network/y" in each.output for each in made.model.graph.node)


def test_the_graph_is_as_plain_as_before() -> None:
    before = folded(network())
    before.model.metadata_props.add(key="names", value="{0: 'a'}")
    made = quantized(before).model
    assert [(each.domain, each.version) for each in made.opset_import] == [("", 13)]
    assert made.metadata_props == before.model.metadata_props
    assert not made.graph.value_info
    assert len({each.name for each in made.graph.node}) == len(made.graph.node)
    assert "BatchNormalization" not in {each.op_type for each in made.graph.node}


@pytest.mark.parametrize("method", ["minmax", "entropy", "percentile"])
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_answers_are_near_those_of_fp32(method: str, opset: int) -> None:
    given, before = samples(8, 8), folded(network(opset=opset))
    made = quantized(before, given, method=method)
    expected, got = tensors(before, given, "network/y"), tensors(made, given, "network/y")
    assert in_int8(made) == {"body/one", "body/two", "head/hidden"}
    assert 0 < np.abs(got - expected).max() < 0.05 * np.abs(expected).max()


def test_the_given_graph_is_not_changed() -> None:
    before = folded(network())
    copy = before.model.SerializeToString()
    quantized(before)
    assert before.model.SerializeToString() == copy


@pytest.mark.parametrize("method", ["minmax", "entropy", "percentile"])
def test_the_same_samples_give_the_same_bytes(method: str) -> None:
    before = folded(network())
    one, other = (quantized(before, samples(3, 5), method=method).model.SerializeToString() for _ in range(2))
    assert one == other
    assert quantized(before, samples(3, 5, seed=1), method=method).model.SerializeToString() != one


@pytest.mark.parametrize("method", ["minmax", "entropy", "percentile"])
def test_how_rows_are_cut_into_batches_is_all_one(method: str) -> None:
    before = folded(network())
    scales = [
        pair_before(quantized(before, samples(*batches), method=method), "body/one", 0)[1]
        for batches in ((12,), (1, 2, 3, 4, 2), (1,) * 12)
    ]
    np.testing.assert_allclose(scales, scales[0], rtol=1e-6)


def test_samples_of_several_widths() -> None:
    def end(nodes: Any, answer: Any) -> Any:
        return HEADS["softmax"].end(nodes, answer, Want(5, any_width=False))

    before = fold(network(), Front("CROPS", SIZE, (12, 20), UNIT), end)
    given = [*samples(3), *samples(2, size=(8, 20), seed=1), *samples(1, size=(8, 16), seed=2)]
    scale = pair_before(quantized(before, given), "body/one", 0)[1]
    largest = max(np.abs(tensors(before, [sample], "network/r0")).max() for sample in given)
    assert scale == pytest.approx(largest / 127, rel=1e-6)


def test_layers_of_few_channels_and_of_one_pixel_stay() -> None:
    nodes = [
        node("Conv", ["x", "w0"], ["t0"], name="stem"),
        node("Conv", ["t0", "narrow"], ["t1"], name="narrow"),
        node("Conv", ["t1", "wide"], ["t2"], name="wide"),
        node("Conv", ["t2", "depth"], ["t3"], name="depthwise", group=C),
        node("GlobalAveragePool", ["t3"], ["g"], name="pool"),
        node("Conv", ["g", "w"], ["s"], name="squeeze"),
        node("Sigmoid", ["s"], ["gate"], name="gate"),
        node("Mul", ["t3", "gate"], ["m"], name="scale"),
        node("Conv", ["m", "w"], ["t4"], name="plain"),
        node("GlobalAveragePool", ["t4"], ["g4"], name="pool 2"),
        node("Flatten", ["g4"], ["f"], axis=1, name="flat"),
        node("MatMul", ["f", "w9"], ["y"], name="logits"),
    ]
    constants = {
        "w0": weights(C, 3, 1, 1),
        "narrow": weights(C - 1, C, 1, 1),
        "wide": weights(C, C - 1, 1, 1),
        "depth": weights(C, 1, 3, 3),
        "w": weights(C, C, 1, 1),
        "w9": weights(C, 5),
    }
    assert in_int8(quantized(folded(graphs.model_of(nodes, constants)))) == {"depthwise", "plain"}


def test_layers_behind_a_resize_stay() -> None:
    """Also behind a Concat; an Add makes new numbers, in front of which nothing is moved."""
    nodes = [
        node("Conv", ["x", "w0"], ["t0"], name="stem"),
        node("Conv", ["t0", "w"], ["t1"], name="before"),
        node("AveragePool", ["t1"], ["half"], name="halve", kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", ["half", "", "doubled"], ["r"], name="resize", mode="nearest"),
        node("Conv", ["r", "w"], ["t2"], name="behind"),
        node("Concat", ["r", "t1"], ["both"], name="join", axis=1),
        node("Conv", ["both", "w2"], ["t3"], name="joined"),
        node("Add", ["r", "t3"], ["sum"], name="add"),
        node("Conv", ["sum", "w"], ["t4"], name="added"),
        node("Add", ["t2", "t4"], ["all"], name="add 2"),
        node("GlobalAveragePool", ["all"], ["g"], name="pool"),
        node("Flatten", ["g"], ["f"], axis=1, name="flat"),
        node("MatMul", ["f", "w9"], ["y"], name="logits"),
    ]
    constants = {
        "w0": weights(C, 3, 1, 1),
        "w": weights(C, C, 1, 1),
        "w2": weights(C, 2 * C, 1, 1),
        "w9": weights(C, 5),
        "doubled": np.array([1, 1, 2, 2], np.float32),
    }
    assert in_int8(quantized(folded(graphs.model_of(nodes, constants)))) == {"before", "added"}


def test_what_scales_by_channel_do_not_fit_stays() -> None:
    nodes = [
        node("Conv", ["x", "w0"], ["t0"], name="stem"),
        node("ConvTranspose", ["t0", "split"], ["t1"], name="transposed in groups", group=2),
        node("Conv", ["t1", "split conv"], ["t2"], name="in groups", group=2),
        node("GlobalAveragePool", ["t2"], ["g"], name="pool"),
        node("Flatten", ["g"], ["f"], axis=1, name="flat"),
        node("Gemm", ["f", "w", "b"], ["t3"], name="half a bias", beta=0.5),
        node("MatMul", ["eye", "t3"], ["t4"], name="weights first"),
        node("MatMul", ["t4", "w9"], ["y"], name="logits"),
    ]
    constants = {
        "w0": weights(2 * C, 3, 1, 1),
        "split": weights(2 * C, C, 1, 1),
        "split conv": weights(2 * C, C, 1, 1),
        "w": weights(2 * C, C),
        "b": weights(C),
        "eye": np.ones((1, 1), np.float32),
        "w9": weights(C, 5),
    }
    made = quantized(folded(graphs.model_of(nodes, constants, entry=(1, 3, "h", "w")), single=True), samples(1, 1))
    assert in_int8(made) == {"in groups"}


def test_a_layer_that_int8_hurts_stays() -> None:
    """One channel a thousand times the others: minmax rounds these to nothing."""
    loud = weights(C, 3, 3, 3)
    loud[0] *= 1000
    blind = weights(C, C, 3, 3)
    blind[:, 0] = 0
    before = folded(network(w0=loud, w1=blind))
    assert in_int8(quantized(before)) == {"body/two", "head/hidden"}


def test_the_last_layer_of_each_answer_stays() -> None:
    """Boxes and scores are made apart; the weighing of distances behind the boxes has a single channel."""
    nodes = [
        node("Conv", ["x", "w0"], ["t0"], name="stem"),
        node("Conv", ["t0", "w"], ["t1"], name="body"),
        node("Conv", ["t1", "w"], ["b0"], name="boxes/0"),
        node("Conv", ["b0", "w"], ["b1"], name="boxes/1"),
        node("Softmax", ["b1"], ["d"], axis=1, name="boxes/softmax"),
        node("Conv", ["d", "bins"], ["box"], name="boxes/mean"),
        node("Conv", ["t1", "w"], ["s0"], name="scores/0"),
        node("Conv", ["s0", "w"], ["s1"], name="scores/1"),
        node("Concat", ["box", "s1"], ["all"], axis=1, name="all"),
        node("GlobalAveragePool", ["all"], ["g"], name="pool"),
        node("Flatten", ["g"], ["y"], axis=1, name="flat"),
    ]
    bins = np.arange(C, dtype=np.float32).reshape(1, C, 1, 1)
    constants = {"w0": weights(C, 3, 1, 1), "w": weights(C, C, 1, 1), "bins": bins}
    made = quantized(folded(graphs.model_of(nodes, constants)))
    assert in_int8(made) == {"body", "boxes/0", "scores/0"}


@pytest.mark.parametrize("name", ["detector", "colour"])
def test_a_network_with_nothing_for_int8_is_refused(tmp_path: Path, name: str) -> None:
    """The cascade's have one layer each."""
    before = job_of(pipeline_from_file(cascade.write(tmp_path)), name).fold()
    picture = cascade.pixels(cascade.objects(9))
    crops = {"detector": picture[None], "colour": picture[None, :16, :16]}[name]
    with pytest.raises(FoldError) as caught:
        quantized(before, [Sample("a", {before.shapes.input.name: crops})])
    assert str(caught.value) == (
        "expected layers for int8: convolutions and matrix products with constant fp32 weights and 16 channels or "
        "more, apart from the first and the last; the network has none; set its `precision` to fp16 or fp32"
    )


def test_a_network_that_keeps_everything_is_refused() -> None:
    with pytest.raises(FoldError, match="the network has none"):
        quantized(folded(network()), keep=["body/*", "head/*"])


def test_a_network_in_fp16_is_refused() -> None:
    with pytest.raises(FoldError, match="constant fp32 weights"):
        quantized(folded(graphs.pooled_linear(dtype=TensorProto.FLOAT16)))


def test_a_network_that_is_in_int8_already_is_refused() -> None:
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        node("GlobalAveragePool", ["d"], ["g"]),
        node("Flatten", ["g"], ["f"], axis=1),
        node("MatMul", ["f", "w"], ["y"]),
    ]
    constants = {"scale": np.array(0.01, np.float32), "zero": np.array(0, np.int8), "w": weights(3, 5)}
    with pytest.raises(FoldError, match="expected a network in fp32; it holds Q/DQ nodes already"):
        quantized(folded(graphs.model_of(nodes, constants)))


def test_numbers_that_are_not_finite_are_refused() -> None:
    infinite = weights(C, 3, 3, 3)
    infinite[3] = np.inf
    with pytest.raises(FoldError, match=r"expected finite values, got (inf|nan) in the tensor r0"):
        quantized(folded(network(w0=infinite)))


def test_an_opset_that_cannot_be_converted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
        raise RuntimeError("No Adapter\nfor something")

    monkeypatch.setattr("tricade_build.quantize.version_converter.convert_version", refuse)
    with pytest.raises(FoldError, match=r"expected opset 13 or later for int8, found 11, .*: No Adapter; export"):
        quantized(folded(network(opset=11)))


@pytest.mark.parametrize("given", [[], [Sample("a", {"CROPS": np.zeros((0, *SIZE, 3), np.uint8)})]])
def test_no_samples_are_refused(given: list[Sample]) -> None:
    with pytest.raises(SampleError, match="the pictures give the network nothing"):
        quantized_from(folded(network()), given, method="minmax", keep=(), report=unheard)


def test_progress_is_told_by_its_share() -> None:
    heard: dict[str, list[float | None]] = {}

    def report(what: str, share: float | None = None, /) -> None:
        heard.setdefault(what, []).append(share)

    quantized_from(folded(network()), samples(1, 2, 1), method="entropy", keep=(), report=report)
    assert heard == {
        "measuring int8 ranges": [1 / 3, 2 / 3, 1],
        "looking for layers that int8 hurts": [1 / 3, 2 / 3, 1],
    }


def test_more_rows_than_change_anything_are_thinned_evenly() -> None:
    crops = np.arange(4 * MAX_ROWS, dtype=np.uint16).reshape(-1, 1, 1, 1)
    parts = np.split(crops, [5, 700, 701])
    given = [Sample("a", {"CROPS": part}) for part in parts]
    taken = np.concatenate([rows["CROPS"] for rows in rows_of(given)]).ravel()
    np.testing.assert_array_equal(taken, np.linspace(0, 4 * MAX_ROWS - 1, MAX_ROWS).round())
    assert np.array_equal(np.concatenate([rows["CROPS"] for rows in rows_of(given, limit=10_000)]), crops)


def test_large_rows_come_alone_and_small_ones_together() -> None:
    def heights(batch: int, side: int) -> list[int]:
        given = [Sample("a", {"TENSOR": np.zeros((batch, side, side, 3), np.uint8)})]
        return [len(rows["TENSOR"]) for rows in rows_of(given)]

    assert heights(4, 1280) == [1, 1, 1, 1]
    assert heights(40, 160) == [20, 20]  # 20 · 160 · 160 pixels are within 2 ** 19
