"""Targets: what they place, what they keep, and what a build that is killed leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cascade
import pytest
from fake_tensorrt import RTX, package
from processes import alive, wait_for

from tricade.gpu import Gpu
from tricade.manifest import Here, manifest_from, misfit, sha256_of
from tricade.publishing import is_cut_off
from tricade.versions import latest_folder, versions
from tricade_build.build import Built, build
from tricade_build.errors import BuildError, EngineError, SpecError
from tricade_build.local import LocalPipeline
from tricade_build.targets import TARGETS, chosen, tensorrt, tensorrt_rtx

TESTS = Path(__file__).parents[1]
NETWORKS = ("squares_detector", "squares_colour")
L4, A10 = Gpu("NVIDIA L4", "8.9"), Gpu("NVIDIA A10", "8.6")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """A machine with fakes of both packages, in this process and in those it starts."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS / "packages"), str(TESTS)]))
    monkeypatch.setenv("TRICADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tensorrt_rtx, "package_of", lambda name: package(RTX))

    def here(version: str = "10.13.0", *gpus: Gpu) -> None:
        monkeypatch.setenv("FAKE_TENSORRT", version)
        monkeypatch.setattr(tensorrt, "package_of", lambda name: package(version))
        monkeypatch.setattr(tensorrt, "gpus", lambda: gpus or (L4,))

    here()
    return here


def built(tmp_path: Path, target: str = "tensorrt", **keys: Any) -> Built:
    return build(cascade.write(tmp_path, **keys), repository=tmp_path / "repository", target=target)


def record(tmp_path: Path, model: str = "squares_colour") -> dict[str, Any]:
    return manifest_from(latest_folder(tmp_path / "repository" / model))


@pytest.mark.parametrize("target", ["tensorrt", "tensorrt-rtx"])
def test_a_plan_its_graph_and_what_both_were_made_from(
    tmp_path: Path, environment: Callable[..., None], target: str
) -> None:
    done = built(tmp_path, target, colour={"opt_batch": 2}, builder={"capabilities": ["8.6", "8.9"]})

    assert (done.built, done.kept) == (NETWORKS, ())
    folder = tmp_path / "repository" / "squares_colour" / "1"
    manifest = record(tmp_path)
    assert {file: entry["sha256"] for file, entry in manifest.items()} == {
        file: sha256_of(folder / file) for file in ("model.onnx", "model.plan")
    }
    assert {entry["precision"] for entry in manifest.values()} == {"fp32"}
    assert {entry["verification"] for entry in manifest.values()} == {None}  # there are no pictures
    engine = manifest["model.plan"]["engine"]
    assert engine.pop("build_s") >= 0
    assert engine == {
        "target": target,
        "version": RTX if target == "tensorrt-rtx" else "10.13.0",
        "capabilities": ["8.6", "8.9"] if target == "tensorrt-rtx" else ["8.9"],
        "gpu": "" if target == "tensorrt-rtx" else "NVIDIA L4",
        "onnx_sha256": manifest["model.onnx"]["sha256"],
        "precisions": {"fp32": engine["precisions"]["fp32"]},
        "profile": {"CROPS": [[1, 16, 16, 3], [2, 16, 16, 3], [8, 16, 16, 3]]},
        "flags": ["-TF32"],
        "optimization_level": 3,
        "workspace_bytes": None,
    }
    assert "max_batch_size: 8" in (folder.parent / "config.pbtxt").read_text()
    here = Here({target: engine["version"]}, "8.9", sha256_of(folder / "model.plan"))
    assert misfit(manifest, here) == ""


def test_the_graph_beside_a_plan_answers_too(tmp_path: Path, environment: Callable[..., None]) -> None:
    built(tmp_path)

    LocalPipeline(tmp_path / "repository", "squares").close()


def test_the_same_again_is_kept(tmp_path: Path, environment: Callable[..., None]) -> None:
    built(tmp_path)

    assert built(tmp_path).kept == NETWORKS
    assert built(tmp_path, detector={"threshold": 0.5}).kept == NETWORKS


@pytest.mark.parametrize(
    ("version", "gpu", "keys", "again"),
    [
        ("10.13.3", L4, {}, NETWORKS),
        ("10.13.0", A10, {}, NETWORKS),
        ("10.13.0", Gpu("NVIDIA L40S", "8.9"), {}, NETWORKS),
        ("10.13.0", L4, {"builder": {"optimization_level": 1}}, NETWORKS),
        ("10.13.0", L4, {"builder": {"workspace_bytes": 1 << 30}}, NETWORKS),
        ("10.13.0", L4, {"colour": {"max_batch": 4}}, NETWORKS[1:]),
        ("10.13.0", L4, {"detector": {"opt_batch": 1}}, NETWORKS[:1]),
    ],
)
def test_what_a_plan_depends_on_builds_it_again(
    tmp_path: Path,
    environment: Callable[..., None],
    version: str,
    gpu: Gpu,
    keys: dict[str, Any],
    again: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built(tmp_path)
    if version == "10.13.3":
        renamed = package("10.13.0")
        renamed.__version__ = version
        monkeypatch.setattr(tensorrt, "package_of", lambda name: renamed)
    else:
        environment(version, gpu)

    assert built(tmp_path, **keys).built == again


@pytest.mark.parametrize("file", ["model.plan", "model.onnx", "manifest.json"])
def test_a_damaged_file_is_made_again(tmp_path: Path, environment: Callable[..., None], file: str) -> None:
    built(tmp_path)
    damaged = tmp_path / "repository" / "squares_colour" / "1" / file
    bad = b"x" + damaged.read_bytes()[1:]
    damaged.write_bytes(bad)

    assert built(tmp_path).built == ("squares_colour",)

    made = damaged.parents[1] / "2" / file
    assert sha256_of(made.with_name("model.plan")) == record(tmp_path)["model.plan"]["sha256"]
    assert damaged.read_bytes() == bad != made.read_bytes()


def test_a_new_plan_comes_with_the_graph_that_was_there(tmp_path: Path, environment: Callable[..., None]) -> None:
    built(tmp_path)
    built(tmp_path, builder={"optimization_level": 1})

    before, now = (tmp_path / "repository" / "squares_colour" / version for version in "12")
    assert sorted(path.name for path in now.iterdir()) == ["manifest.json", "model.onnx", "model.plan"]
    assert (before / "model.onnx").samefile(now / "model.onnx")
    assert not (before / "model.plan").samefile(now / "model.plan")


def test_another_target_leaves_the_plan_behind(tmp_path: Path, environment: Callable[..., None]) -> None:
    built(tmp_path)

    done = built(tmp_path, "onnxruntime")

    assert done.built == NETWORKS
    plans = {path.parent.name for path in (tmp_path / "repository").rglob("*.plan")}
    assert plans == {"1"}
    assert versions(tmp_path / "repository" / "squares_colour") == (1, 2)
    assert set(record(tmp_path)) == {"model.onnx"}
    assert built(tmp_path, "onnxruntime").kept == NETWORKS


@pytest.mark.parametrize(
    ("target", "keys", "error", "said"),
    [
        ("tensorrt", {"colour": {"opt_batch": 9}}, SpecError, "colour.opt_batch: expected at most `max_batch`, 8; got 9"),
        ("tensorrt", {"precision": "int8"}, SpecError, "calibration: missing; expected a folder of pictures"),
        ("tensorrt", {"builder": {"optimization_level": 6}}, SpecError, "builder.optimization_level: expected 0 "),
        ("tensorrt-rtx", {"builder": {"capabilities": []}}, SpecError, "builder.capabilities: expected quoted"),
        ("tensorrt-rtx", {"builder": {"capabilities": ["9.0"]}}, EngineError, "some of 7.5, 8.6, 8.9, 12.0.*got 9.0"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_said_before_anything_is(
    tmp_path: Path,
    environment: Callable[..., None],
    target: str,
    keys: dict[str, Any],
    error: type[BuildError],
    said: str,
) -> None:
    with pytest.raises(error, match=said):
        built(tmp_path, target, **keys)

    assert not (tmp_path / "repository").exists()


@pytest.mark.parametrize(
    ("gpus", "installed", "name", "why"),
    [
        ((), True, "onnxruntime", "not tensorrt: this machine shows no CUDA device"),
        ((L4,), False, "onnxruntime", "not tensorrt: the Python package tensorrt cannot be imported"),
        ((L4,), True, "tensorrt", "this machine serves it"),
    ],
)
def test_the_target_of_this_machine(
    gpus: tuple[Gpu, ...], installed: bool, name: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tensorrt, "gpus", lambda: gpus)
    monkeypatch.setattr(tensorrt, "package_of", lambda name: package("8.6.0") if installed else None)

    assert chosen() == (name, why)
    if name == "onnxruntime":
        with pytest.raises(EngineError, match=why.removeprefix("not tensorrt: ")):
            built(tmp_path)


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorrt_rtx, "package_of", lambda name: None)

    with pytest.raises(EngineError, match="run: pip install tensorrt-rtx-cu13"):
        built(tmp_path, "tensorrt-rtx")
    assert set(TARGETS) == {"onnxruntime", "tensorrt", "tensorrt-rtx"}


# A build in a process of its own, whose renames stop at the one that `$STOP_AT` names; the first one publishes.
_BUILD = """
import os, sys, time
from pathlib import Path
from tricade_build.build import build
replace, done = os.replace, []
def stopping(source, target):
    if str(target).startswith(sys.argv[2]):  # others are caches
        done.append(target)
    if len(done) == int(os.environ.get("STOP_AT", "0")):
        Path(os.environ["FAKE_SAYS"]).write_text(f"place {os.getpid()}")
        time.sleep(60)
    replace(source, target)
os.replace = stopping
build(Path(sys.argv[1]), repository=Path(sys.argv[2]), target="tensorrt-rtx")
"""


@pytest.mark.parametrize("when", ["parse", "compile", "1", "2", "5"])
def test_a_build_that_is_killed_has_happened_or_not(
    tmp_path: Path, environment: Callable[..., None], when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path, "tensorrt-rtx")
    repository, old = tmp_path / "repository", files(tmp_path / "repository")
    says, work = tmp_path / "says", tmp_path / "work"
    work.mkdir()
    changed = cascade.write(tmp_path, detector={"candidates": 320}, colour={"top_k": 2, "max_batch": 4})
    settings = {"FAKE_AT": f"{when}:wait"} if not when.isdigit() else {"STOP_AT": when}
    process = subprocess.Popen(
        [sys.executable, "-c", _BUILD, changed, repository],
        env={**os.environ, **settings, "FAKE_SAYS": str(says), "TMPDIR": str(work)},
    )
    wait_for(lambda: says.exists() and says.read_text())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    wait_for(lambda: not alive(int(says.read_text().split()[1])))
    wait_for(lambda: not list(work.iterdir()))
    published = when.isdigit() and int(when) > 1
    left = files(repository)
    assert is_cut_off(repository) == published
    assert (left == old) == (when in ("parse", "compile", "1", "2"))
    done = build(changed, repository=repository, target="tensorrt-rtx")

    assert (done.kept if published else done.built) == NETWORKS
    assert not list(repository.glob(".tricade-*"))
    new = files(repository)
    assert {name: data for name, data in new.items() if "/1/" in name} == {
        name: data for name, data in old.items() if "/1/" in name
    }
    for model in NETWORKS:
        assert record(tmp_path, model)["model.plan"]["sha256"] == sha256_of(repository / model / "2" / "model.plan")
    LocalPipeline(repository, "squares").close()


def files(repository: Path) -> dict[str, bytes]:
    """All but what builds write before they publish."""
    return {
        str(path.relative_to(repository)): path.read_bytes()
        for path in sorted(repository.rglob("*"))
        if path.is_file() and not path.relative_to(repository).parts[0].startswith(".tricade-")
    }


def test_the_script_for_a_gpu_host_finds_nothing_wrong(
    tmp_path: Path,
    environment: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from gpu import build_text

    from tricade import gpu
    from tricade_build import plans

    environment("8.6.0", L4)
    monkeypatch.setattr(gpu, "gpus", lambda: (L4,))
    monkeypatch.setattr(plans, "package_of", lambda name: package("8.6.0"))
    monkeypatch.setattr(build_text, "ROOT", tmp_path)  # it works in there
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRICADE_CACHE", str(tmp_path / "cache"))
    command = [str(tmp_path / "out"), "--pipeline", str(cascade.write(tmp_path)), "--level", "1"]
    command += ["--precisions", "fp32", "--pages", "0"]

    assert build_text.main(command) == 0
    found = json.loads((tmp_path / "out" / "found.json").read_text())
    assert (found["problems"], found["gpu"], found["tensorrt"]) == ([], ["NVIDIA L4", "8.9"], "8.6.0")
    assert found["built"]["fp32"]["engines"]["squares_colour"]["optimization_level"] == 1
    copied = {path.relative_to(tmp_path / "out" / "plans").as_posix() for path in tmp_path.glob("out/plans/*/*/*")}
    assert copied == {f"fp32/{model}/{file}" for model in NETWORKS for file in ("model.plan", "manifest.json")}
    assert build_text.main(command) == 0
    assert "compiling squares_colour" in capsys.readouterr().out
