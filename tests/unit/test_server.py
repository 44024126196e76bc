"""The parts of `tricade serve` that need no server."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tricade_server import backends, installation
from tricade_server.backends import OURS, backend_directory
from tricade_server.errors import BadRepository, NoTriton, PortTaken
from tricade_server.installation import Installation, find_triton
from tricade_server.loading import Loader
from tricade_server.log import ServerLog
from tricade_server.machine import misfit_of, version_from_number
from tricade_server.pinned import pinned
from tricade_server.process import Endpoints
from tricade_server.repository import read_repository
from tricade_server.stubs import stubs_of


def native(root: Path, *names: str) -> Path:
    """A folder of native backends, a library each."""
    for name in names:
        (root / name).mkdir(parents=True)
        (root / name / f"libtriton_{name}.so").write_text(name)
    return root


def image(root: Path, *names: str) -> Installation:
    return Installation(root / "bin" / "tritonserver", native(root / "backends", *names), None, ())


def test_the_image_goes_before_the_wheel(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tritonserver").touch()
    assert find_triton(tmp_path) == Installation(tmp_path / "bin" / "tritonserver", tmp_path / "backends", None, ())


def test_elsewhere_it_is_the_wheel_with_the_stub_of_this_python(tmp_path):
    found = find_triton(tmp_path)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found.binary.is_file()
    assert found.stub is not None
    assert found.stub.parent.name == version
    assert all(folder.is_dir() for folder in found.libraries)


def test_without_either_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    with pytest.raises(NoTriton, match=r"pip install nvidia-pytriton==0\.7\.0"):
        find_triton(tmp_path)


def test_a_python_without_a_stub_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "_version", lambda: "3.99")
    with pytest.raises(NoTriton, match=r"no Python stub for 3\.99, only for 3\.10, 3\.11"):
        find_triton(tmp_path)


def test_native_backends_go_before_stand_ins(tmp_path):
    made = backend_directory(image(tmp_path / "triton", "python", "tensorrt"), tmp_path / "made")
    assert {path.name for path in made.iterdir()} == {
        path.name for path in OURS.iterdir() if path.name != "__pycache__"
    } | {"python"}
    assert [path.name for path in (made / "tensorrt").iterdir()] == ["libtriton_tensorrt.so"]
    assert (made / "onnxruntime" / "model.py").read_text() == (OURS / "onnxruntime" / "model.py").read_text()
    assert not any(path.is_symlink() for path in made.rglob("*"))  # Triton refuses libraries behind links


def test_an_image_that_has_ours_is_used_as_it_is(tmp_path):
    names = [path.name for path in OURS.iterdir() if path.is_dir() and path.name != "__pycache__"]
    triton = image(tmp_path / "triton", "python", *names)
    assert backend_directory(triton, tmp_path / "made") == triton.backends
    assert not (tmp_path / "made").exists()


def test_the_stub_lies_beside_the_library(tmp_path):
    made = backend_directory(find_triton(tmp_path), tmp_path / "made")
    assert (made / "python" / "triton_python_backend_stub").stat().st_mode & 0o100
    assert (made / "python" / "libtriton_python.so").is_file()


def test_folders_of_killed_processes_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(backends.tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    for name in (f"tricade-{ended.pid}-x", "tricade-1-y", "tricade-other", "else"):
        (tmp_path / name).mkdir()
    with backends.own_folder() as mine:
        assert mine.parent == tmp_path
        assert {path.name for path in tmp_path.iterdir()} == {"tricade-1-y", "tricade-other", "else", mine.name}
    assert not mine.exists()


@pytest.mark.parametrize(
    ("number", "expected"),
    [(8600, "8.6.0"), (8601, "8.6.1"), (100_001, "10.0.1"), (101_303, "10.13.3"), (110_400, "11.4.0")],
)
def test_the_number_of_a_tensorrt_library(number, expected):
    assert version_from_number(number) == expected


def test_a_plan_is_looked_at_before_it_is_loaded(tmp_path):
    plan = tmp_path / "3" / "model.plan"
    assert misfit_of(plan) == "there is no model.plan in version 3"
    plan.parent.mkdir()
    plan.write_bytes(b"plan")
    assert misfit_of(plan).startswith("manifest.json does not say what model.plan was built for; run here: tricade")
    engine = {"target": "tensorrt", "version": "8.6.1", "capabilities": ["9.0"], "gpu": "H200"}
    record = {"sha256": hashlib.sha256(b"plan").hexdigest(), "engine": engine}
    (plan.parent / "manifest.json").write_text(json.dumps({"model.plan": record | {"sha256": "0" * 64}}))
    assert misfit_of(plan).startswith("model.plan is damaged or was replaced")
    (plan.parent / "manifest.json").write_text(json.dumps({"model.plan": record}))
    assert misfit_of(plan).startswith("model.plan was built by tensorrt 8.6.1, here is nothing that runs plans")


def write(folder: Path, text: str, version: str | None = "1") -> None:
    folder.mkdir(parents=True)
    (folder / "config.pbtxt").write_text(text)
    if version:
        (folder / version).mkdir()


ENSEMBLE = 'platform: "ensemble" ensemble_scheduling { step { model_name: "b" } }'


def test_ensembles_come_after_what_they_need(tmp_path):
    write(tmp_path / "a", ENSEMBLE)
    write(tmp_path / "b", 'backend: "crop"')
    write(tmp_path / "c", 'platform: "tensorrt_plan" default_model_filename: "model.plan"', "3")
    (tmp_path / "c" / "12").mkdir()
    (tmp_path / "c" / "²").mkdir()
    (tmp_path / "no model").mkdir()
    models = read_repository(tmp_path)
    assert [(model.name, model.is_ensemble, model.is_plan, model.version_folder.name) for model in models] == [
        ("b", False, False, "1"), ("c", False, True, "12"), ("a", True, False, "1"),
    ]  # fmt: skip
    assert models[1].plan == tmp_path / "c" / "12" / "model.plan"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "holds no pipeline; run: tricade build"),
        ({"b": 'backend: "crop"'}, "holds no pipeline; run: tricade build"),
        ({"a": "platform ensemble"}, r"a/config\.pbtxt is not a model configuration"),
    ],
)
def test_what_is_no_repository_is_named(tmp_path, texts, message):
    for name, text in texts.items():
        write(tmp_path / name, text)
    with pytest.raises(BadRepository, match=message):
        read_repository(tmp_path)


class Recording:
    """Stands in for `Control`: what it was asked to load, with which configuration, and what lay there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.loaded = folder, []

    def load(self, model: str, config: str | None = None) -> None:
        self.loaded.append((model, config and json.loads(config), (self.folder / model / "config.pbtxt").read_text()))

    def warm_up(self, pipeline: str, image: bytes) -> None: ...


def test_what_falls_back_does_so_in_what_triton_reads(tmp_path):
    """Triton reads a pipeline's models again when it loads the pipeline: it must not find the plan's configuration."""
    plan, fallback = 'platform: "tensorrt_plan"', 'backend: "onnxruntime" default_model_filename: "model.onnx"'
    write(tmp_path / "r" / "a", ENSEMBLE)
    write(tmp_path / "r" / "b", plan, "7")
    (tmp_path / "r" / "b" / "configs").mkdir()
    (tmp_path / "r" / "b" / "configs" / "onnxruntime.pbtxt").write_text(fallback)
    (tmp_path / "r" / "b" / "7" / "model.onnx").touch()
    said: list[str] = []
    with pinned(tmp_path / "r", tmp_path / "pinned") as models:
        control = Recording(tmp_path / "pinned")
        loader = Loader(control, models, said.append)
        loader.load_all()
        loader.reload("b")
    assert said == ["b runs on ONNX Runtime: there is no model.plan in version 7"]
    again = {
        "backend": "onnxruntime",
        "default_model_filename": "model.onnx",
        "parameters": {"TRICADE_RESTARTS": {"string_value": "1"}},
    }
    assert control.loaded == [("b", None, fallback), ("a", None, ENSEMBLE), ("b", again, fallback)]
    assert (tmp_path / "r" / "b" / "config.pbtxt").read_text() == plan


@pytest.mark.parametrize("has_plan", [True, False])
def test_only_a_plan_can_have_fallen_back(tmp_path, has_plan):
    """A network that was built without one runs as it should."""
    write(tmp_path / "r" / "a", ENSEMBLE)
    write(tmp_path / "r" / "b", 'platform: "tensorrt_plan"')
    (tmp_path / "r" / "b" / "configs").mkdir()
    (tmp_path / "r" / "b" / "configs" / "onnxruntime.pbtxt").write_text('default_model_filename: "model.onnx"')
    (tmp_path / "r" / "b" / "1" / "model.onnx").touch()
    if has_plan:
        (tmp_path / "r" / "b" / "1" / "model.plan").write_bytes(b"unknown")
    with pinned(tmp_path / "r", tmp_path / "pinned") as models:
        loader = Loader(Recording(tmp_path / "pinned"), models, lambda line: None)
        loader.load_all()
    assert loader.fell_back.keys() == ({"b"} if has_plan else set())
    assert all("manifest.json does not say what model.plan was built for" in why for why in loader.fell_back.values())


def test_a_model_without_a_version_is_named(tmp_path):
    write(tmp_path / "a", ENSEMBLE, None)
    with pytest.raises(BadRepository, match=r"a has no version folder \(1/\)"):
        read_repository(tmp_path)


@pytest.mark.parametrize("name", ["grpc", "http", "metrics"])
def test_a_taken_port_is_named_with_the_option_that_changes_it(name):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ports = {"grpc_port": 0, "http_port": 0, "metrics_port": 0} | {f"{name}_port": port}
        with pytest.raises(PortTaken, match=f"{name} port {port} on 127.0.0.1 is not free .*; choose --{name}-port"):
            Endpoints(**ports).check_free()


LOG = (
    b'I1130 04:34:09.848478 1 server.cc:321] "hello"\n'
    b'W1130 04:34:09.848478 1 metrics.cc:798] "DCGM unable to start: DCGM initialization error"\n'
    b"+------+\n| Model |\n"
    b'E1130 04:34:09.848478 1 model.cc:1] "it broke"\n'
)


@pytest.mark.parametrize(("verbose", "lines"), [(False, 1), (True, 5)])
def test_the_log_passes_on_what_matters(capfd, verbose, lines):
    log = ServerLog(iter(LOG.splitlines(keepends=True)), verbose=verbose)
    log.run()
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == lines
    assert shown[-1].endswith('"it broke"')


def test_the_log_notices_that_calls_have_ended():
    def lines():
        yield b'I1130 04:34:09.848478 1 server.cc:336] "All models are stopped, unloading models"\n'
        assert log.drained.is_set()

    log = ServerLog(lines(), verbose=False)
    assert not log.drained.is_set()
    log.run()


def test_stubs_are_found_by_their_command_line(tmp_path):
    stub = tmp_path / "triton_python_backend_stub"
    stub.symlink_to("/bin/sh")
    model = tmp_path / "repository" / "squares_crop" / "1" / "model.py"
    command = [str(stub), str(model)]
    model.parent.mkdir(parents=True)
    model.write_text("read line\n")
    code = f"import subprocess, sys; p = subprocess.Popen({command!r}, stdin=subprocess.PIPE); print(p.pid, flush=True); sys.stdin.read(); p.kill()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        while not (found := stubs_of(parent.pid)):
            assert parent.poll() is None
        assert found == {child: "squares_crop"}
        parent.stdin.close()
    assert stubs_of(parent.pid) == {}
