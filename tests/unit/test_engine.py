"""`compile_plan` on the builders of TensorRT 8.6, 10, 11 and for RTX; and `compiled_from`, a process of its own."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_tensorrt import RTX, VERSIONS, Behaviour, package
from onnx import TensorProto, helper
from processes import alive

from tricade.stage import Tensor
from tricade_build.caches import CACHE
from tricade_build.engine import Range, Recipe, compile_plan, known_capabilities
from tricade_build.engine_process import Kit, compiled_from
from tricade_build.engine_progress import Phases, monitor_of
from tricade_build.engine_timings import Timings, timings_for
from tricade_build.errors import EngineError, ParseError
from tricade_build.weights import unheard

PACKAGES = Path(__file__).parents[1] / "packages"
RECIPE = Recipe(
    model="text_orientation",
    inputs=(Tensor("CROPS", "UINT8", (48, -1, 3)),),
    outputs=(Tensor("SCORE", "FP32", (-1,)),),
    max_batch=8,
    profile={"CROPS": Range((1, 48, 320, 3), (4, 48, 320, 3), (8, 48, 640, 3))},
)
AHEAD = replace(RECIPE, capabilities=("8.6", "12.0"))


def graph(*, width: int | str = "width") -> bytes:
    nodes = [
        helper.make_node("Cast", ["CROPS"], ["floats"], to=TensorProto.FLOAT, name="cast"),
        helper.make_node("ReduceMean", ["floats"], ["mean"], axes=[1, 3], keepdims=0, name="mean"),
        helper.make_node("Sigmoid", ["mean"], ["SCORE"], name="score"),
    ]
    made = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("CROPS", TensorProto.UINT8, ["batch", 48, width, 3])],
        [helper.make_tensor_value_info("SCORE", TensorProto.FLOAT, ["batch", "steps"])],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def compiled(version: str, behaviour: Behaviour | None = None, *, recipe: Recipe | None = None, **keys: Any) -> Any:
    recipe = recipe or (AHEAD if version == RTX else RECIPE)
    return compile_plan(package(version, behaviour), keys.pop("data", graph()), recipe, **{"timings": Timings()} | keys)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_compiles(version: str) -> None:
    does = Behaviour()

    made = compiled(version, does)

    assert made.plan.startswith(b"fake plan")
    assert made.precisions == {"fp32": 3}
    assert (made.flags, made.optimization_level) == (("-TF32",), 3)
    assert does.seen["config"].cleared == ["TF32"]
    assert does.seen["config"].profiles == [{"CROPS": ((1, 48, 320, 3), (4, 48, 320, 3), (8, 48, 640, 3))}]
    assert does.seen["config"].pools == {}


@pytest.mark.parametrize(
    ("version", "flags"), [("8.6.0", 1 << 0), ("10.13.0", 1 << 1), ("11.4.0", 1 << 0), (RTX, 1 << 0)]
)
def test_types_are_the_graphs_where_there_is_a_choice(version: str, flags: int) -> None:
    does = Behaviour()

    compiled(version, does)

    names = package(version).NetworkDefinitionCreationFlag
    assert does.seen["flags"] == flags
    assert names(flags.bit_length() - 1).name == ("EXPLICIT_BATCH" if version == "8.6.0" else "STRONGLY_TYPED")


def test_the_builders_options_reach_it() -> None:
    does = Behaviour()

    made = compiled("10.13.0", does, recipe=replace(RECIPE, optimization_level=1, workspace_bytes=1 << 30))

    assert made.optimization_level == does.seen["config"].builder_optimization_level == 1
    assert does.seen["config"].pools == {"WORKSPACE": 1 << 30}


def test_capabilities_are_named_ahead_of_time() -> None:
    does = Behaviour()

    compiled(RTX, does)

    assert does.seen["config"].aims == {0: "SM86", 1: "SM120"}
    assert known_capabilities(package(RTX)) == ("7.5", "8.6", "8.9", "12.0")
    assert known_capabilities(package("11.4.0")) == ()


@pytest.mark.parametrize("version", ["8.6.0", RTX])
def test_every_node_that_the_parser_refuses_is_named(version: str) -> None:
    with pytest.raises(ParseError) as caught:
        compiled(version, Behaviour(refused=["ReduceMean", "Sigmoid"]))

    assert str(caught.value).split("\n")[:3] == [
        f"expected a graph that TensorRT {version} takes; it refuses:",
        "  ReduceMean (mean): No importer registered for op: ReduceMean",
        "  Sigmoid (score): No importer registered for op: Sigmoid",
    ]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems) == (str(caught.value), caught.value.problems)


@pytest.mark.parametrize(
    ("version", "behaviour", "said"),
    [
        (
            "10.13.0",
            Behaviour(compiles=False, says=["no\nmemory", "gave up"]),
            "TensorRT 10.13.0 does not compile text_orientation: no memory; gave up",
        ),
        ("8.6.0", Behaviour(renamed="PROBABILITY"), "outputs SCORE, model.plan has .* outputs PROBABILITY"),
        ("11.4.0", Behaviour(largest=4), r"max_batch_size 8, thus allows CROPS \[5,48,-1,3\], .* to \[4,48,640,3\]"),
    ],
)
def test_what_is_not_as_configured_is_refused(version: str, behaviour: Behaviour, said: str) -> None:
    with pytest.raises(EngineError, match=said):
        compiled(version, behaviour)


def test_a_network_compiled_ahead_of_time_is_compared_too() -> None:
    with pytest.raises(EngineError, match=r"SCORE INT32 \[-1,-1\], model.plan has SCORE FP32 \[-1,-1\]"):
        compiled(RTX, recipe=replace(AHEAD, outputs=(Tensor("SCORE", "INT32", (-1,)),)))


def test_without_an_inspector_that_tells_types_the_networks_count() -> None:
    assert compiled("8.6.0", Behaviour(names_only=True)).precisions == {"fp32": 3}


@pytest.mark.parametrize(
    "shapes",
    [
        Range((1, 48, 320, 3), (16, 48, 320, 3), (8, 48, 640, 3)),
        Range((0, 48, 320, 3), (4, 48, 320, 3), (8, 48, 640, 3)),
        Range((4, 48, 320, 3), (1, 48, 320, 3), (8, 48, 640, 3)),
        Range((1, 48, 320), (1, 48, 320, 3), (8, 48, 640, 3)),
    ],
)
def test_shapes_out_of_order_are_refused_before_anything_is_compiled(shapes: Range) -> None:
    recipe = replace(RECIPE, profile={"CROPS": shapes})

    with pytest.raises(EngineError, match="1 <= smallest <= likeliest <= largest"):
        compiled("10.13.0", Behaviour(at=pytest.fail), recipe=recipe)


def test_a_profile_that_the_graph_does_not_take() -> None:
    with pytest.raises(EngineError, match=r"CROPS to take \[8, 48, 640, 3\]; in the graph it is \[-1, 48, 320, 3\]"):
        compiled("10.13.0", data=graph(width=320))
    with pytest.raises(EngineError, match="expected the inputs TENSOR; the graph has CROPS"):
        compiled("10.13.0", recipe=replace(RECIPE, profile={"TENSOR": RECIPE.profile["CROPS"]}))


def test_an_unknown_capability() -> None:
    with pytest.raises(EngineError, match=r"out of 7.5, 8.6, 8.9, 12.0.*got 9.0"):
        compiled(RTX, recipe=replace(AHEAD, capabilities=("8.6", "9.0")))


@pytest.mark.parametrize("version", ["8.6.0", "11.4.0"])
def test_timings_are_kept_and_added_to(tmp_path: Path, version: str) -> None:
    timings = Timings(tmp_path / "made" / "here.cache")

    compiled(version, timings=timings)
    assert timings.file
    assert timings.file.read_bytes() == b"measured"
    timings.file.write_bytes(b"others")
    compiled(version, timings=timings)
    assert timings.file.read_bytes() == b"measured others"
    compiled(version, Behaviour(timings_fit=False), timings=timings)
    assert timings.file.read_bytes() == b"measured others"
    assert sorted(file.name for file in timings.file.parent.iterdir()) == [".lock", "here.cache"]


def test_timings_that_cannot_be_written_cost_time_only(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert compiled("10.13.0", timings=Timings(tmp_path / "file" / "here.cache")).plan


def test_each_gpu_and_version_has_timings_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    assert timings_for(gpu="NVIDIA L4", version="8.6.0").file == tmp_path / "timings" / "NVIDIA-L4-8.6.0.cache"
    monkeypatch.delenv(CACHE)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert timings_for(gpu="a/../b", version="10").file == tmp_path / ".cache/tricade/timings/a-..-b-10.cache"


def test_progress_is_told_where_there_is_any() -> None:
    heard: list[tuple[str, float]] = []

    def hear(phase: str, share: float) -> None:
        heard.append((phase, share))

    trt = package("10.13.0")
    compile_plan(trt, graph(), RECIPE, timings=Timings(), monitor=monitor_of(trt, hear))

    assert heard == [("Building", 0.25), ("Timing", 0.375), ("Building", 0.5), ("Building", 0.75), ("Building", 1.0)]
    assert monitor_of(package("8.6.0"), hear) is None


def test_phases_out_of_order_do_no_harm() -> None:
    phases = Phases()

    assert phases.step("unknown", 3) == 0.0
    phases.finish("unknown")
    phases.start("outer", None, 0)
    phases.start("inner", "outer", 2)
    assert phases.step("inner", 7) == 1.0
    phases.finish("outer")
    assert phases.step("inner", 0) == 1.0


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kit:
    """Processes find the fakes, and what they leave lies in `tmp_path`."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PACKAGES), str(PACKAGES.parent)]))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Kit("tensorrt", "tensorrt", "10.13.0")


def test_a_process_compiles_and_tells(kit: Kit, tmp_path: Path) -> None:
    heard: list[Any] = []

    made = compiled_from(graph(), RECIPE, kit, timings=Timings(), report=lambda *said: heard.append(said))

    assert made.plan.startswith(b"fake plan")
    assert heard[0] == ("compiling text_orientation with tensorrt 10.13.0",)
    assert heard[1] == ("compiling text_orientation: Building", 0.25)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("package", "at", "said"),
    [
        ("tensorrt", "compile:die", "tensorrt 10.13.0 was ended by SIGABRT while compiling, saying: .*invalid pointer"),
        ("nosuch", "", "nosuch fails to compile text_orientation: ModuleNotFoundError: No module named 'nosuch'"),
    ],
)
def test_a_process_that_fails_is_an_error(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, at: str, said: str
) -> None:
    monkeypatch.setenv("FAKE_AT", at)

    with pytest.raises(EngineError, match=said):
        compiled_from(graph(), RECIPE, replace(kit, package=package), timings=Timings(), report=unheard)

    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_ends_the_process_at_once(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = tmp_path / "says"
    monkeypatch.setenv("FAKE_AT", "compile:wait")
    monkeypatch.setenv("FAKE_SAYS", str(says))

    def interrupt(_what: str, share: float | None = None) -> None:
        if share is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled_from(graph(), RECIPE, kit, timings=Timings(), report=interrupt)

    assert not says.exists() or not alive(int(says.read_text().split()[1]))
    assert [path for path in tmp_path.iterdir() if path != says] == []
