"""Graphs in int8 compiled for real: TensorRT for RTX takes the Q/DQ nodes, and computes these layers in int8."""

from __future__ import annotations

from typing import Any

import graphs
import numpy as np
import pytest

from tricade_build.engine import Range, Recipe, compile_plan
from tricade_build.engine_timings import Timings
from tricade_build.fold import Front, fold
from tricade_build.heads import HEADS, Want
from tricade_build.quantize import quantized_from
from tricade_build.samples import Sample
from tricade_build.spec import Normalize
from tricade_build.weights import unheard

trt = pytest.importorskip("tensorrt_rtx", reason="there is no wheel of it for this machine")
node = graphs.node


def network(opset: int) -> Any:
    """All operators that go into int8, between a first and a last layer that do not."""
    nodes = [
        node("Conv", ["x", "stem"], ["t0"]),
        node("Conv", ["t0", "conv"], ["t1"]),
        node("Relu", ["t1"], ["r1"]),
        node("Conv", ["r1", "depthwise"], ["t2"], group=16),
        node("ConvTranspose", ["t2", "transposed"], ["t3"]),
        node("Add", ["t3", "t0"], ["sum"]),
        node("GlobalAveragePool", ["sum"], ["mean"]),
        node("Flatten", ["mean"], ["flat"], axis=1),
        node("Gemm", ["flat", "gemm", "bias"], ["t4"], transB=1),
        node("MatMul", ["t4", "matmul"], ["t5"]),
        node("MatMul", ["t5", "last"], ["y"]),
    ]
    shapes = {
        "stem": (16, 3, 1, 1),
        "conv": (16, 16, 3, 3),
        "depthwise": (16, 1, 1, 1),
        "transposed": (16, 16, 3, 3),
        "gemm": (16, 16),
        "bias": (16,),
        "matmul": (16, 16),
        "last": (16, 5),
    }
    random = np.random.default_rng(0)
    constants = {name: random.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    return graphs.model_of(nodes, constants, opset=opset)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_the_layers_are_in_int8(opset: int) -> None:
    def end(nodes: Any, answer: Any) -> Any:
        return HEADS["softmax"].end(nodes, answer, Want(1, any_width=False))

    folded = fold(network(opset), Front("CROPS", (8, 12), (), Normalize()), end)
    crops = np.random.default_rng(1).integers(0, 256, (8, 8, 12, 3), np.uint8)
    made = quantized_from(folded, [Sample("a", {"CROPS": crops})], method="minmax", keep=(), report=unheard)

    recipe = Recipe(
        model="small",
        inputs=(made.shapes.input,),
        outputs=made.shapes.outputs,
        max_batch=4,
        profile={"CROPS": Range((1, 8, 12, 3), (4, 8, 12, 3), (4, 8, 12, 3))},
        capabilities=("8.6", "12.0"),
    )
    compiled = compile_plan(trt, made.model.SerializeToString(), recipe, timings=Timings())

    assert compiled.precisions == {"fp32": 2, "int8": 5}
