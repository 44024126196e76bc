"""One real server for all live tests, started by the command itself, with both pipelines in one repository."""

from __future__ import annotations

from pathlib import Path

import cascade
import pytest
import running

from tricade_build.build import build
from tricade_build.models import fetch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def repository(tmp_path_factory) -> Path:
    """`squares`, `mixed` (with three classifiers), `tiled` (with tiles) and `text`, built for ONNX Runtime."""
    folder = tmp_path_factory.mktemp("built")
    pipelines = folder / "pipelines"
    fetch("text", into=pipelines / "models")
    (pipelines / "text.yaml").write_text((ROOT / "pipelines" / "text.yaml").read_text())
    squares = cascade.write(pipelines / "squares")
    mixed = cascade.write(
        pipelines / "mixed",
        name="mixed",
        detector={"max_detections": 400},
        classifiers={
            "warmth": cascade.colour_section(classes=["warm"], top_k=2, max_batch=4),
            "coolness": cascade.colour_section(classes=["cool"], max_batch=16),
            "look": {"onnx": "colour.onnx", "head": "embedding", "size": [16, 16], "classes": ["cool"]},
        },
    )
    tiled = cascade.write(
        pipelines / "tiled",
        name="tiled",
        detector={"tile": {"size": [cascade.SIDE, cascade.SIDE], "overlap": 0.2}, "max_batch": 32},
        instances={"preprocess": 1, "crop": 1},
    )
    for pipeline in (squares, mixed, tiled, pipelines / "text.yaml"):
        build(pipeline, repository=folder / "repository")
    return folder / "repository"


@pytest.fixture(scope="session")
def squares_repository(repository, tmp_path_factory) -> Path:
    """The fixture cascade alone, for servers that are hurt on purpose."""
    folder = tmp_path_factory.mktemp("squares_alone")
    for model in repository.glob("squares*"):
        (folder / model.name).symlink_to(model)
    return folder


@pytest.fixture(scope="session")
def server(repository):
    """The server and where it listens; it must leave nothing behind."""
    with running.served(repository) as server:
        yield server


@pytest.fixture
def squares(server):
    with server.client("squares") as client:
        yield client


@pytest.fixture
def mixed(server):
    with server.client("mixed") as client:
        yield client


@pytest.fixture
def text(server):
    with server.client("text") as client:
        yield client
