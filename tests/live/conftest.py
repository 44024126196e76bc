"""One real server for all live tests, started by the command itself, with all pipelines in one repository."""

from __future__ import annotations

from pathlib import Path

import live_pipelines
import pytest
import running

from tricade_build.build import build


@pytest.fixture(scope="session")
def repository(tmp_path_factory) -> Path:
    """All pipelines of live tests, built."""
    if live_pipelines.BUILT:
        return Path(live_pipelines.BUILT)
    folder = tmp_path_factory.mktemp("built")
    for pipeline in live_pipelines.write(folder / "pipelines"):
        build(pipeline, repository=folder / "repository", target=live_pipelines.TARGET)
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
