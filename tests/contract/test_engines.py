"""Engines compiled for real, by TensorRT for RTX: it needs no GPU, and compiles ahead of time for kinds that it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cascade
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tricade.manifest import Here, manifest_from, misfit, sha256_of
from tricade.stage import Tensor
from tricade.versions import latest_folder
from tricade_build.build import build
from tricade_build.engine import Range, Recipe
from tricade_build.engine_found import check_precision
from tricade_build.engine_process import Kit, compiled_from
from tricade_build.engine_timings import Timings
from tricade_build.errors import EngineError, ParseError
from tricade_build.half import half_from
from tricade_build.models import fetch
from tricade_build.networks import Job, job_of
from tricade_build.plans import Place, recipe_of
from tricade_build.spec_file import pipeline_from_file
from tricade_build.weights import unheard

trt = pytest.importorskip("tensorrt_rtx", reason="there is no wheel of it for this machine")
ROOT = Path(__file__).resolve().parents[2]


def entry_of(model: Path) -> dict[str, object]:
    """What the latest manifest says about a plan, which must be the one that lies there."""
    folder = latest_folder(model)
    manifest = manifest_from(folder)
    for capability in ("8.6", "8.9", "12.0"):
        here = Here({"tensorrt-rtx": trt.__version__}, capability, sha256_of(folder / "model.plan"))
        assert misfit(manifest, here) == ""
    entry: dict[str, object] = manifest["model.plan"]["engine"]
    return entry


def test_the_example_compiles_without_a_gpu_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch("text", into=tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    networks = ("text_detector", "text_orientation", "text_text")
    heard: list[tuple[str, float | None]] = []

    def report(what: str, share: float | None = None, /) -> None:
        heard.append((what, share))

    pipeline = ROOT / "pipelines" / "text.yaml"
    done = build(pipeline, repository=tmp_path / "r", target="tensorrt-rtx", report=report)

    assert done.built == networks
    for model in networks:
        entry = entry_of(tmp_path / "r" / model)
        assert set(entry["precisions"]) == {"fp32"}  # type: ignore[call-overload]
        shares = [share for what, share in heard if share is not None and model in what]
        assert shares == sorted(shares)
        assert shares[-1] <= 1
    widest = entry_of(tmp_path / "r" / "text_text")["profile"]
    assert widest == {"CROPS": [[1, 48, 320, 3], [32, 48, 320, 3], [32, 48, 2304, 3]]}
    assert build(pipeline, repository=tmp_path / "r", target="tensorrt-rtx").kept == networks


def test_boxes_and_colours_compile(tmp_path: Path) -> None:
    done = build(cascade.write(tmp_path), repository=tmp_path / "r", target="tensorrt-rtx")

    assert done.built == ("squares_detector", "squares_colour")
    assert entry_of(tmp_path / "r" / "squares_detector")["flags"] == ["-TF32"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's networks in it."""
    folder = tmp_path_factory.mktemp("work")
    fetch("text", into=folder / "models")
    return folder


@pytest.mark.parametrize(
    ("name", "convolutions", "products"), [("detector", 85, 0), ("orientation", 53, 1), ("text", 57, 13)]
)
def test_the_examples_networks_compile_in_fp16(
    models: Path, monkeypatch: pytest.MonkeyPatch, name: str, convolutions: int, products: int
) -> None:
    monkeypatch.chdir(models)
    job = job_of(pipeline_from_file(ROOT / "pipelines" / "text.yaml"), name)
    half = half_from(job.fold(), widths=job.front.widths)
    recipe = replace(recipe_of(job, ahead(job), half.shapes), precision="fp16")

    made = compiled_from(half.model.SerializeToString(), recipe, ahead(job).kit, timings=Timings(), report=unheard)

    assert made.precisions == {"fp16": convolutions + products}
    assert made.flags == ("-TF32",)
    count = [node.op_type for node in half.model.graph.node].count
    assert (count("Conv") + count("ConvTranspose"), count("MatMul") + count("Gemm")) == (convolutions, products)


def ahead(job: Job) -> Place:
    return Place(Kit("tensorrt_rtx", "tensorrt-rtx", trt.__version__), None, ("8.6", "8.9", "12.0"))


def test_an_engine_that_came_out_in_fp32_is_an_error(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(models)
    job = job_of(pipeline_from_file(ROOT / "pipelines" / "text.yaml"), "orientation")
    folded = job.fold()
    recipe = recipe_of(job, ahead(job), folded.shapes)

    made = compiled_from(folded.model.SerializeToString(), recipe, ahead(job).kit, timings=Timings(), report=unheard)

    assert made.precisions == {"fp32": 54}
    with pytest.raises(EngineError, match=r"orientation to compute in fp16 .* in 100% .* compiled 0% .*54 in fp32"):
        check_precision("fp16", {"fp16": 54}, made.precisions, model="orientation")


def test_what_is_quantized_in_the_graph_is_int8() -> None:
    random = np.random.default_rng(0)
    weights = {"w": (16, 3, 3, 3), "v": (16, 16, 3, 3), "m": (16, 4)}
    nodes = [
        helper.make_node("Cast", ["CROPS"], ["pixels"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["pixels"], ["nchw"], perm=[0, 3, 1, 2]),
        *quantized("nchw", "a"),
        *quantized("w", "b"),
        helper.make_node("Conv", ["a", "b"], ["c"]),
        *quantized("c", "d"),
        *quantized("v", "e"),
        helper.make_node("Conv", ["d", "e"], ["f"]),
        helper.make_node("GlobalAveragePool", ["f"], ["g"]),
        helper.make_node("Flatten", ["g"], ["h"]),
        helper.make_node("MatMul", ["h", "m"], ["SCORE"]),
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("CROPS", TensorProto.UINT8, ["batch", 32, 32, 3])],
        [helper.make_tensor_value_info("SCORE", TensorProto.FLOAT, ["batch", 4])],
        [
            *(numpy_helper.from_array(random.random(dims, np.float32), name) for name, dims in weights.items()),
            numpy_helper.from_array(np.array(0.1, np.float32), "scale"),
            numpy_helper.from_array(np.array(0, np.int8), "zero"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    recipe = Recipe(
        model="quantized",
        inputs=(Tensor("CROPS", "UINT8", (32, 32, 3)),),
        outputs=(Tensor("SCORE", "FP32", (4,)),),
        max_batch=1,
        profile={"CROPS": Range((1, 32, 32, 3), (1, 32, 32, 3), (1, 32, 32, 3))},
        capabilities=("8.9",),
        precision="int8",
    )
    kit = Kit("tensorrt_rtx", "tensorrt-rtx", trt.__version__)

    made = compiled_from(model.SerializeToString(), recipe, kit, timings=Timings(), report=unheard)

    assert made.precisions == {"fp32": 1, "int8": 2}


def quantized(tensor: str, out: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("QuantizeLinear", [tensor, "scale", "zero"], [f"{out}8"]),
        helper.make_node("DequantizeLinear", [f"{out}8", "scale", "zero"], [out]),
    ]


def test_what_the_parser_refuses_is_named(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["CROPS"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("EfficientNMS_TRT2", ["floats"], ["kept"], name="suppress"),
        helper.make_node("Frobnicate", ["kept"], ["SCORE"], name="odd"),
    ]
    shape = ["batch", 4]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("CROPS", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("SCORE", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    recipe = Recipe(
        model="odd",
        inputs=(Tensor("CROPS", "UINT8", (4,)),),
        outputs=(Tensor("SCORE", "FP32", (4,)),),
        max_batch=1,
        profile={"CROPS": Range((1, 4), (1, 4), (1, 4))},
        capabilities=("8.9",),
    )
    kit = Kit("tensorrt_rtx", "tensorrt-rtx", trt.__version__)

    with pytest.raises(ParseError) as caught:
        compiled_from(model.SerializeToString(), recipe, kit, timings=Timings(), report=unheard)

    assert [(problem.op, problem.name) for problem in caught.value.problems] == [
        ("EfficientNMS_TRT2", "suppress"),
        ("Frobnicate", "odd"),
    ]
    assert "Plugin not found" in str(caught.value)
