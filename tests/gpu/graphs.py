"""Small graphs to compile into plans, and what they compute, in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tricade.engine import SHARING

from .manifests import record

HEIGHT, WIDTH, PATCH = 48, 192, 8
_random = np.random.default_rng(0)
_KERNELS = _random.normal(0, 0.1, (8, 3, PATCH, PATCH)).astype(np.float32)
_WEIGHTS = _random.normal(0, 0.1, (8 * HEIGHT * WIDTH // PATCH**2, 5)).astype(np.float32)

LAYERS, CHANNELS, ROWS = 60, 8, 16
# So small that numbers neither vanish nor grow in 60 layers.
_DEEP = _random.normal(0, 0.01, (LAYERS, CHANNELS, CHANNELS, 3, 3)).astype(np.float32)

Range = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # smallest, likeliest, largest shape


@dataclass(frozen=True)
class Recipe:
    """A graph and the optimization profiles to compile it with; `shared`: contexts may share those (8.6)."""

    graph: Callable[[], onnx.ModelProto]
    profiles: tuple[Mapping[str, Range], ...]
    shared: bool = True


def classifier() -> onnx.ModelProto:
    """`CROPS` UINT8 [n,48,192,3] to the two best of five classes: `INDEX` INT32, `SCORE` FP32 [n,2]."""
    nodes = [
        helper.make_node("Cast", ["CROPS"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["float", "half"], ["scaled"]),
        helper.make_node("Sub", ["scaled", "one"], ["normal"]),
        helper.make_node("Transpose", ["normal"], ["nchw"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["nchw", "kernels"], ["patches"], strides=[PATCH, PATCH]),
        helper.make_node("Relu", ["patches"], ["positive"]),
        helper.make_node("Flatten", ["positive"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        helper.make_node("TopK", ["probabilities", "k"], ["SCORE", "best"], axis=1),
        helper.make_node("Cast", ["best"], ["INDEX"], to=TensorProto.INT32),
    ]
    constants = {"half": np.float32(127.5), "one": np.float32(1), "kernels": _KERNELS, "weights": _WEIGHTS}
    return _model(
        nodes,
        {"CROPS": (TensorProto.UINT8, ["n", HEIGHT, WIDTH, 3])},
        {"INDEX": (TensorProto.INT32, ["n", 2]), "SCORE": (TensorProto.FLOAT, ["n", 2])},
        {**constants, "k": np.array([2], np.int64)},
    )


def classify(crops: Any) -> tuple[Any, Any]:
    """What `classifier` computes: indices and scores, [n,2] each."""
    n, rows, columns = len(crops), HEIGHT // PATCH, WIDTH // PATCH
    patches = (crops.astype(np.float32) / 127.5 - 1).reshape(n, rows, PATCH, columns, PATCH, 3)
    found = np.maximum(np.einsum("nrycxk,okyx->norc", patches, _KERNELS, optimize=True), 0)
    logits = found.reshape(n, -1) @ _WEIGHTS
    powers = np.exp(logits - logits.max(1, keepdims=True))
    scores = powers / powers.sum(1, keepdims=True)
    best = np.argsort(-scores, axis=1)[:, :2]
    return best.astype(np.int32), np.take_along_axis(scores, best, 1)


def sum_and_order() -> onnx.ModelProto:
    """`LEFT` FP32 and `RIGHT` FP16 [n,w] to `SUM` FP32 and `MORE` BOOL [n,w]."""
    nodes = [
        helper.make_node("Cast", ["RIGHT"], ["right"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["LEFT", "right"], ["SUM"]),
        helper.make_node("Greater", ["LEFT", "right"], ["MORE"]),
    ]
    shape = ["n", "w"]
    return _model(
        nodes,
        {"LEFT": (TensorProto.FLOAT, shape), "RIGHT": (TensorProto.FLOAT16, shape)},
        {"SUM": (TensorProto.FLOAT, shape), "MORE": (TensorProto.BOOL, shape)},
        {},
    )


def places_of_ones() -> onnx.ModelProto:
    """`X` FP32 [n,4] to `PLACES` INT32 [2,?], as many as are not zero."""
    nodes = [
        helper.make_node("NonZero", ["X"], ["places"]),
        helper.make_node("Cast", ["places"], ["PLACES"], to=TensorProto.INT32),
    ]
    return _model(nodes, {"X": (TensorProto.FLOAT, ["n", 4])}, {"PLACES": (TensorProto.INT32, [2, "found"])}, {})


def deep() -> onnx.ModelProto:
    """`X` FP32 [n,8,16,w] through 60 convolutions and sums to `Y` of the same shape: many small kernels."""
    nodes, last = [], "X"
    for place in range(LAYERS):
        end = "Y" if place == LAYERS - 1 else f"sum{place}"
        nodes += [
            helper.make_node("Conv", [last, f"kernels{place}"], [f"found{place}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"found{place}"], [f"positive{place}"]),
            helper.make_node("Add", [last, f"positive{place}"], [end]),
        ]
        last = end
    shape = ["n", CHANNELS, ROWS, "w"]
    constants = {f"kernels{place}": kernels for place, kernels in enumerate(_DEEP)}
    return _model(nodes, {"X": (TensorProto.FLOAT, shape)}, {"Y": (TensorProto.FLOAT, shape)}, constants)


def deepen(found: Any) -> Any:
    """What `deep` computes."""
    for kernels in _DEEP:
        padded = np.pad(found, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        found = found + np.maximum(np.einsum("ncyxij,ocij->noyx", windows, kernels, optimize=True), 0)
    return found.astype(np.float32)


def _model(nodes: list[Any], inputs: Any, outputs: Any, constants: Mapping[str, Any]) -> onnx.ModelProto:
    infos = [
        [helper.make_tensor_value_info(name, *value) for name, value in values.items()] for values in (inputs, outputs)
    ]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "graph", *infos, initializer=weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _crops(largest: int) -> dict[str, Range]:
    size = (HEIGHT, WIDTH, 3)
    return {"CROPS": ((1, *size), (largest, *size), (largest, *size))}


def _both(largest: int, narrowest: int, widest: int) -> dict[str, Range]:
    shapes = ((1, narrowest), (largest, widest), (largest, widest))
    return {"LEFT": shapes, "RIGHT": shapes}


def _deep(largest: int) -> dict[str, Range]:
    narrow, wide = (CHANNELS, ROWS, 16), (CHANNELS, ROWS, 64)
    return {"X": ((1, *narrow), (largest, *narrow), (largest, *wide))}


RECIPES = {
    "classifier": Recipe(classifier, (_crops(16),)),
    "classifier_of_8": Recipe(classifier, (_crops(8),)),
    "sum_and_order": Recipe(sum_and_order, (_both(8, 1, 64), _both(4, 65, 256))),
    "deep": Recipe(deep, (_deep(16),)),
    "deep_unshared": Recipe(deep, (_deep(16),), shared=False),
    "places_of_ones": Recipe(places_of_ones, ({"X": ((1, 4), (4, 4), (8, 4))},)),
}


def compile_plan(name: str, file: Path, *, level: int = 1) -> None:
    """Compile a recipe with the installed TensorRT into `file`; fp32 proper, so that numpy can judge it.

    A manifest beside it says where contexts may share its profiles.
    """
    import tensorrt as trt  # the one tool here that needs it; the rest may be rehearsed without

    log = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(log)
    flags = trt.NetworkDefinitionCreationFlag
    network = builder.create_network(1 << int(flags.EXPLICIT_BATCH) if hasattr(flags, "EXPLICIT_BATCH") else 0)
    parser = trt.OnnxParser(network, log)
    if not parser.parse(RECIPES[name].graph().SerializeToString()):
        raise SystemExit(f"{name}: {parser.get_error(0)}")
    config = builder.create_builder_config()
    config.builder_optimization_level = level
    config.clear_flag(trt.BuilderFlag.TF32)
    sharing = getattr(getattr(trt, "PreviewFeature", None), SHARING, None)  # 8.6; later always
    if RECIPES[name].shared and sharing is not None:
        config.set_preview_feature(sharing, True)
    for ranges in RECIPES[name].profiles:
        profile = builder.create_optimization_profile()
        for tensor, shapes in ranges.items():
            profile.set_shape(tensor, *shapes)
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise SystemExit(f"{name}: TensorRT {trt.__version__} does not compile it; its log says why")
    if RECIPES[name].shared and sharing is not None:
        record(file, bytes(plan))  # first: where the plan is, all is
    file.write_bytes(plan)
