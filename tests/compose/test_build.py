"""The service `build` on a real engine: it compiles a user's pipeline, confined, and keeps what it has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from compose.project import ROOT, Project, run
from compose.stubs import write_libraries

from tricade_build.models import fetch

BASE = "python:3.11-slim-bookworm"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The profile `build` over a folder of a user's own."""
    work = tmp_path_factory.mktemp("work")
    work.chmod(0o755)  # whoever runs the tests, user 1000 reads it
    shutil.copytree(ROOT / "pipelines", work / "pipelines")
    fetch("text", into=work / "models")
    project = Project("build", {"TRICADE_WORK": str(work)})
    try:
        project.compose("build", "build", timeout_s=900)
        yield project
    finally:
        project.compose("down", "-v")


def inside(project: Project, *command: str) -> str:
    return project.compose("run", "--rm", "build", *command, timeout_s=300)


def build(project: Project) -> dict[str, list[str]]:
    pipeline = ("/work/pipelines/text.yaml", "--repository", "/models")
    said = inside(project, "tricade", "build", *pipeline, "--target", "tensorrt-rtx", "--json")
    return dict(json.loads(said.strip().splitlines()[-1]))


def test_it_compiles_into_the_repository_once(project: Project) -> None:
    first, second = build(project), build(project)
    assert {"text_detector", "text_orientation", "text_text"} <= set(first["built"])
    assert second["built"] == []
    assert set(second["kept"]) >= set(first["built"])
    assert len(inside(project, "sh", "-c", "ls /models/*/*/model.plan").split()) == 3
    assert "nothing is wrong" in inside(project, "tricade", "check", "/models")


def test_it_is_confined(project: Project) -> None:
    facts = "id -u; grep -E 'CapBnd|NoNewPrivs' /proc/1/status; ls /sys/class/net"
    writes = "touch /work/x /opt/x 2>&1; touch /models/x /cache/x /tmp/x && rm /models/x && echo written"
    said = inside(project, "sh", "-c", f"{facts}; {writes}")
    assert said.split()[0] == "1000"
    assert "CapBnd:\t0000000000000000" in said
    assert "NoNewPrivs:\t1" in said
    assert "\nlo\n" in said
    assert said.count("Read-only file system") == 2
    assert said.endswith("written\n")


@pytest.mark.parametrize(("number", "version"), [(110_100, "11.1.0"), (101_303, "10.13.3")])
def test_where_the_image_has_tensorrt_the_bindings_are_of_that_version(
    tmp_path: Path, number: int, version: str
) -> None:
    write_libraries(tmp_path, major=number // 10_000, number=number)
    volumes = ("-v", f"{ROOT}:/opt/tricade:ro", "-v", f"{tmp_path}:/stubs:ro", "-e", "LD_LIBRARY_PATH=/stubs")
    report = "import tensorrt; print(); print(tensorrt.__version__, hasattr(tensorrt, 'OnnxParser'))"
    script = f'/opt/tricade/build/install-tensorrt /t; du -sm /t; PYTHONPATH=/t python3 -c "{report}"'
    said = run("docker", "run", "--rm", *volumes, BASE, "sh", "-ec", script, timeout_s=120).splitlines()
    found, parser = said[-1].split()
    assert found.startswith(f"{version}.")
    assert parser == "True"
    assert int(said[-3].split()[0]) < 20  # MB: not the libraries
