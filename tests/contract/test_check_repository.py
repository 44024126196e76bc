"""`tricade check` finds nothing in the committed `model_repository`, with its weights beside it, and is quick."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tricade_build.build import build
from tricade_build.checks import check
from tricade_build.models import fetch

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 1.0


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights as they are built, configuration and labels as they are committed."""
    folder = tmp_path_factory.mktemp("work")
    fetch("text", into=folder / "models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        build(ROOT / "pipelines" / "text.yaml", repository=folder / "repository")
    for file in (ROOT / "model_repository").glob("text*/**/*"):
        if file.suffix in (".pbtxt", ".txt"):
            shutil.copy(file, folder / "repository" / file.relative_to(ROOT / "model_repository"))
    return folder / "repository"


def test_the_committed_repository_is_without_mistakes(repository: Path) -> None:
    assert check(repository) == []


def test_it_is_quick(repository: Path) -> None:
    start = time.perf_counter()
    check(repository)

    assert time.perf_counter() - start < LIMIT_S
