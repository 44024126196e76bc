"""Engines compiled for real, by TensorRT for RTX: it needs no GPU, and compiles ahead of time for kinds that it names."""

from __future__ import annotations

from pathlib import Path

import cascade
import pytest
from onnx import TensorProto, helper

from tricade.manifest import Here, manifest_from, misfit, sha256_of
from tricade.stage import Tensor
from tricade_build.build import build
from tricade_build.engine import Range, Recipe
from tricade_build.engine_process import Kit, compiled_from
from tricade_build.engine_timings import Timings
from tricade_build.errors import ParseError
from tricade_build.models import fetch
from tricade_build.weights import unheard

trt = pytest.importorskip("tensorrt_rtx", reason="there is no wheel of it for this machine")
ROOT = Path(__file__).resolve().parents[2]


def entry_of(folder: Path) -> dict[str, object]:
    """What the manifest says about a plan, which must be the one that lies there."""
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
        entry = entry_of(tmp_path / "r" / model / "1")
        assert set(entry["precisions"]) == {"fp32"}  # type: ignore[call-overload]
        shares = [share for what, share in heard if share is not None and model in what]
        assert shares == sorted(shares)
        assert shares[-1] <= 1
    widest = entry_of(tmp_path / "r" / "text_text" / "1")["profile"]
    assert widest == {"CROPS": [[1, 48, 320, 3], [32, 48, 320, 3], [32, 48, 2304, 3]]}
    assert build(pipeline, repository=tmp_path / "r", target="tensorrt-rtx").kept == networks


def test_boxes_and_colours_compile(tmp_path: Path) -> None:
    done = build(cascade.write(tmp_path), repository=tmp_path / "r", target="tensorrt-rtx")

    assert done.built == ("squares_detector", "squares_colour")
    assert entry_of(tmp_path / "r" / "squares_detector" / "1")["flags"] == ["-TF32"]


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
