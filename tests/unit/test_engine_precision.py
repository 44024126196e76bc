"""Engines compute in what was asked for: what TensorRT is told, what is found, and what is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from fake_tensorrt import RTX, VERSIONS, Behaviour, package
from graphs import node
from onnx import TensorProto, helper, numpy_helper

from tricade.stage import Tensor
from tricade_build.engine import Range, Recipe, compile_plan
from tricade_build.engine_found import check_precision
from tricade_build.engine_layers import precisions_of
from tricade_build.engine_timings import Timings
from tricade_build.engine_typed import bind_types
from tricade_build.engine_work import Work, work_of
from tricade_build.errors import EngineError
from tricade_build.wires import wires_of

FULL, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
SIZE = (8, 12, 3)
RECIPE = Recipe(
    model="text_text",
    inputs=(Tensor("CROPS", "UINT8", SIZE),),
    outputs=(Tensor("SCORE", "FP32", (4,)),),
    max_batch=8,
    profile={"CROPS": Range((1, *SIZE), (4, *SIZE), (8, *SIZE))},
    precision="fp16",
)


def graph(*, kind: int = HALF, names: bool = True) -> bytes:
    """Pixels in fp32, two convolutions and a product in `kind`, a sum and a decoding in fp32."""
    nodes = [
        node("Cast", ["CROPS"], ["pixels"], to=FULL, name="front"),
        node("Transpose", ["pixels"], ["nchw"], perm=[0, 3, 1, 2], name="turn"),
        node("Cast", ["nchw"], ["x"], to=kind, name="enter"),
        node("Conv", ["x", "w"], ["c"], name="conv"),
        node("Relu", ["c"], ["r"], name="relu"),
        node("Conv", ["r", "v"], ["d"], name="conv2"),
        node("Cast", ["d"], ["d32"], to=FULL, name="sum"),
        node("GlobalAveragePool", ["d32"], ["g32"], name="pool"),
        node("Cast", ["g32"], ["g"], to=kind, name="summed"),
        node("Flatten", ["g"], ["f"], name="flat"),
        node("MatMul", ["f", "m"], ["y"], name="product"),
        node("Cast", ["y"], ["y32"], to=FULL, name="leave"),
        node("Add", ["y32", "limit"], ["moved"], name="move"),
        node("Greater", ["moved", "limit"], ["more"], name="compare"),
        node("Where", ["more", "moved", "limit"], ["SCORE"], name="choose"),
    ]
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    constants = {
        "w": np.ones((4, 3, 1, 1), dtype),
        "v": np.ones((4, 4, 1, 1), dtype),
        "m": np.ones((4, 4), dtype),
        "limit": np.array(1e6, np.float32),  # infinite in fp16
    }
    if not names:
        for each in nodes:
            each.name = ""
    return serialized(nodes, constants)


def quantized() -> bytes:
    """A convolution that takes int8, one that does not."""
    nodes = [
        node("Cast", ["CROPS"], ["pixels"], to=FULL, name="front"),
        node("Transpose", ["pixels"], ["x"], perm=[0, 3, 1, 2], name="turn"),
        node("Conv", ["x", "w"], ["c"], name="conv"),
        node("QuantizeLinear", ["c", "scale", "zero"], ["q"], name="q"),
        node("DequantizeLinear", ["q", "scale", "zero"], ["dq"], name="dq"),
        node("Conv", ["dq", "v"], ["d"], name="conv2"),
        node("GlobalAveragePool", ["d"], ["g"], name="pool"),
        node("Flatten", ["g"], ["SCORE"], name="flat"),
    ]
    constants = {
        "w": np.ones((4, 3, 1, 1), np.float32),
        "v": np.ones((4, 4, 1, 1), np.float32),
        "scale": np.array(0.1, np.float32),
        "zero": np.array(0, np.int8),
    }
    return serialized(nodes, constants)


def serialized(nodes: Sequence[onnx.NodeProto], constants: Mapping[str, Any]) -> bytes:
    made = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info("CROPS", TensorProto.UINT8, ["batch", *SIZE])],
        [helper.make_tensor_value_info("SCORE", FULL, ["batch", 4])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def compiled(version: str, data: bytes, *, recipe: Recipe = RECIPE, does: Behaviour | None = None) -> Any:
    recipe = replace(recipe, capabilities=("8.6",)) if version == RTX else recipe
    return compile_plan(package(version, does), data, recipe, timings=Timings())


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_graph_in_fp16_is_an_engine_in_fp16(version: str, names: bool) -> None:
    does = Behaviour()

    made = compiled(version, graph(names=names), does=does)

    assert made.precisions == {"fp16": 3}
    obeyed = ("FP16", "OBEY_PRECISION_CONSTRAINTS") if version == "8.6.0" else ()
    assert made.flags == ("-TF32", *obeyed)
    assert does.seen["config"].flags == list(obeyed)


def bound(does: Behaviour) -> dict[str, tuple[str, str]]:
    """What each layer computes in and gives, as it was told."""
    layers = does.seen["network"].layers
    return {
        layer.name: (
            layer.precision.name if layer.precision_is_set else "",
            *(kind.name for kind in layer.bound.values()),
        )
        for layer in layers
        if layer.precision_is_set or layer.bound
    }


@pytest.mark.parametrize("names", [True, False])
def test_before_10_the_layers_are_tied_to_the_graphs_types(names: bool) -> None:
    does = Behaviour()

    compiled("8.6.0", graph(names=names), does=does)

    def name(title: str, out: str) -> str:
        return title if names else f"node_of_{out}"

    assert bound(does) == {
        name("turn", "nchw"): ("", "FLOAT"),
        name("conv", "c"): ("HALF", "HALF"),
        name("relu", "r"): ("HALF", "HALF"),
        name("conv2", "d"): ("HALF", "HALF"),
        name("pool", "g32"): ("FLOAT", "FLOAT"),
        name("product", "y"): ("HALF", "HALF"),
        "limit": ("", "FLOAT"),
        name("move", "moved"): ("FLOAT", "FLOAT"),
        name("compare", "more"): ("FLOAT",),
        name("choose", "SCORE"): ("FLOAT", "FLOAT"),
    }


def test_a_layer_that_helps_belongs_to_the_next_node() -> None:
    """As where a bias is broadcast before it is added, or a softmax's answer is shaped back."""
    trt, does = package("8.6.0"), Behaviour()
    compiled("8.6.0", graph(), does=does)
    network = does.seen["network"]
    move = next(layer for layer in network.layers if layer.name == "move")
    kind = type(move)
    broadcast = kind("SHUFFLE", "(Unnamed Layer* 7) [Shuffle]", [move.get_input(1)], [move.get_input(1)])
    inner = kind("ELEMENTWISE", "ONNXTRT_unsqueeze", [move.get_input(0)], [move.get_input(0)])
    for layer in (broadcast, inner):
        layer.metadata = ""
    inner.get_output(0).name = "unknown"
    network.layers.insert(network.layers.index(move), broadcast)
    network.layers.insert(network.layers.index(move), inner)

    bind_types(trt, does.seen["config"], network, wires_of(onnx.load_from_string(graph())))

    assert broadcast.bound[0].name == "FLOAT"
    assert inner.precision.name == "FLOAT"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_graph_in_fp32_asks_for_nothing(version: str) -> None:
    does = Behaviour()

    made = compiled(version, graph(kind=FULL), recipe=replace(RECIPE, precision="fp32"), does=does)

    assert (made.precisions, made.flags, does.seen["config"].flags) == ({"fp32": 3}, ("-TF32",), [])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_graph_that_quantizes_is_an_engine_in_int8(version: str) -> None:
    does = Behaviour()

    made = compiled(version, quantized(), recipe=replace(RECIPE, precision="int8"), does=does)

    assert made.precisions == {"fp32": 1, "int8": 1}
    assert made.flags == (("-TF32", "INT8") if version == "8.6.0" else ("-TF32",))
    if version == "8.6.0":
        assert bound(does) == {}


@pytest.mark.parametrize("version", ["8.6.0", "10.13.0"])
def test_without_an_inspector_that_tells_types_the_networks_count(version: str) -> None:
    does = Behaviour(names_only=True)

    assert compiled(version, graph(), does=does).precisions == {"fp16": 3}
    int8 = compiled(version, quantized(), recipe=replace(RECIPE, precision="int8"), does=does)
    assert int8.precisions == {"fp32": 1, "int8": 1}


@pytest.mark.parametrize("version", ["8.6.0", "10.13.0", "11.4.0"])
@pytest.mark.parametrize(("precision", "data"), [("fp16", graph()), ("int8", quantized())])
def test_an_engine_that_came_out_in_fp32_is_an_error(version: str, precision: str, data: bytes) -> None:
    with pytest.raises(EngineError, match=rf"expected text_text to compute in {precision} .* compiled 0% .* in fp32"):
        compiled(version, data, recipe=replace(RECIPE, precision=precision), does=Behaviour(computes="FLOAT"))


@pytest.mark.parametrize(
    ("asked", "graph", "found", "fine"),
    [
        ("fp32", {"fp32": 9}, {"fp16": 9}, True),
        ("fp16", {"fp16": 57}, {"fp16": 40}, True),
        ("fp16", {"fp16": 57}, {"fp16": 20, "fp32": 20}, True),
        ("fp16", {"fp16": 57}, {"fp16": 19, "fp32": 20}, False),
        ("fp16", {"fp16": 57}, {"fp32": 40}, False),
        ("fp16", {"fp16": 57}, {}, False),
        ("fp16", {"fp16": 2, "fp32": 8}, {"fp16": 1, "fp32": 8}, True),
        ("fp16", {"fp32": 8}, {"fp32": 8}, True),  # all of it is kept in fp32
        ("fp16", {}, {}, True),
        ("int8", {"int8": 50, "fp32": 3}, {"int8": 30, "fp16": 20}, True),
        ("int8", {"int8": 50, "fp32": 3}, {"fp16": 53}, False),
    ],
)
def test_half_of_the_graphs_share_is_enough(
    asked: str, graph: Mapping[str, int], found: Mapping[str, int], fine: bool
) -> None:
    if fine:
        check_precision(asked, graph, found)
    else:
        with pytest.raises(EngineError, match=f"compute in {asked}"):
            check_precision(asked, graph, found)


def test_the_work_of_a_graph() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"], name="first"),
        node("Conv", ["a", "w"], ["b"]),
        node("Cast", ["b"], ["h"], to=HALF),
        node("MatMul", ["h", "h"], ["p"], name="half"),
        node("QuantizeLinear", ["b", "scale"], ["q"]),
        node("DequantizeLinear", ["q", "scale"], ["d"]),
        node("Reshape", ["d", "shape"], ["e"]),
        node("Gemm", ["e", "g"], ["i"], name="int8"),
        node("MatMul", ["g", "g"], ["none"], name="constant"),
        node("Relu", ["i"], ["y"]),
    ]
    constants = {
        "w": np.ones((3, 3, 1, 1), np.float32),
        "scale": np.array(1, np.float32),
        "shape": np.array([-1, 8]),
        "g": np.ones((8, 8), np.float32),
    }
    made = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", FULL, [1, 3, 8, 8])],
        [helper.make_tensor_value_info(name, FULL, None) for name in ("y", "none")],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )

    found = work_of(wires_of(helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)])))

    assert found.precisions == {"first": "fp32", "node_of_b": "fp32", "half": "fp16", "int8": "int8"}
    assert found.order[:2] == ["first", "node_of_b"]
    assert len(found.order) == len(nodes)


def old(name: str, kind: str, taken: str, *, given: str = "", weights: str = "") -> dict[str, Any]:
    """A layer as TensorRT 8.6 tells it."""
    tensors = [[{"Name": "t", "Location": "Device", "Format/Datatype": form}] for form in (taken, given or taken)]
    layer = {"Name": name, "LayerType": kind, "Inputs": tensors[0], "Outputs": tensors[1]}
    return layer | ({"Weights": {"Type": weights, "Count": 9}} if weights else {})


def new(nodes: str, kind: str, dtype: str, *, name: str = "__myl_x") -> dict[str, Any]:
    """A layer as TensorRT 10 tells it; `nodes` a space between two."""
    tensor = [{"Name": "t", "Dimensions": [1], "Format/Datatype": dtype}]
    metadata = "\x1e".join(f"[ONNX Layer: {each}]" for each in nodes.split())
    return {"Name": name, "LayerType": kind, "Inputs": tensor, "Outputs": tensor, "Metadata": metadata}


NAMES = ("/c1/Conv", "/c1/Conv_1", "/relu", "/m/MatMul", "/m/Gemm", "/end")
WORK = Work({name: "fp16" for name in NAMES if "Conv" in name or "/m/" in name}, NAMES)
NHWC = "Channel major FP16 format where channel % 8 == 0"


@pytest.mark.parametrize(
    ("layers", "found"),
    [
        ([], {}),
        ([old("/c1/Conv + /relu", "CaskConvolution", NHWC, weights="Half")], {"fp16": 1}),
        # A name that begins like another's is another's.
        ([old("/c1/Conv_1 + /relu", "CaskConvolution", "Row major linear FP32", weights="Float")], {"fp32": 1}),
        ([old("/c1/Conv || /c1/Conv_1", "CaskConvActPool", NHWC)], {"fp16": 2}),
        ([old("/c1/Conv", "CudaDepthwiseConvolution", "Thirty-two wide channel vectorized row major Int8 format")], {"int8": 1}),
        # What was merged with quantization before it takes fp32, and its weights tell.
        ([old("w + QuantizeLinear_1 + /c1/Conv", "CaskConvolution", "Row major linear FP32", weights="Int8")], {"int8": 1}),
        ([old("Reformatting CopyNode for Input Tensor 0 to /c1/Conv", "Reformat", NHWC)], {"fp16": 1}),  # nothing else
        (
            [
                old("Reformatting CopyNode for Input Tensor 0 to /c1/Conv", "Reformat", NHWC),
                old("/c1/Conv", "CaskConvolution", "Row major linear FP32"),
                old("PWN(/relu)", "PointWiseV2", NHWC),
            ],
            {"fp32": 1},
        ),
        ([old("/m/Gemm", "CaskGemmMatrixMultiply", "Row major linear FP16 format")], {"fp16": 1}),
        # Its second compiler's part holds all in between that nobody else has.
        (
            [
                old("/c1/Conv", "CaskConvolution", "Row major linear FP32"),
                old("{ForeignNode[/c1/Conv_1.../m/Gemm]}", "Myelin", "Row major linear FP16 format", given="Row major linear FP32"),
            ],
            {"fp16": 3, "fp32": 1},
        ),
        ([old("{ForeignNode[weight.../end]}", "Myelin", "Row major linear FP16 format")], {"fp16": 4}),
        ([new("/m/MatMul /m/Gemm", "gemm", "Half", name="/m/MatMul+/m/Gemm_myl0_3")], {"fp16": 2}),
        # The rest of a node that a kernel of another kind computes is no second one.
        ([new("/m/MatMul", "kgen", "Float"), new("/m/MatMul", "gemm", "Half")], {"fp16": 1}),
        ([new("/c1/Conv /relu", "kgen", "Half"), new("/end", "kgen", "Float")], {"fp16": 1}),
        ([new("/m/MatMul", "gemm", "BFloat16")], {"bf16": 1}),
        ([{"Name": "x", "LayerType": "conv", "Inputs": [{"Format": "Row major linear (kLINEAR)", "DataType": "Half"}]}], {"fp16": 1}),
        ([new("", "ConvertLayer", "Int32")], {}),
    ],
)  # fmt: skip
def test_what_the_inspector_tells(layers: Sequence[Mapping[str, Any]], found: Mapping[str, int]) -> None:
    assert precisions_of(json.loads(json.dumps(layers)), WORK) == found
