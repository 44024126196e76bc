"""Builds of one repository at once: one after the other."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tricade_build.errors import RepositoryError
from tricade_build.lock import LOCK, locked
from tricade_build.weights import unheard

_WAITING = """
import sys
from pathlib import Path
from tricade_build.lock import locked
with locked(Path(sys.argv[1]), lambda what, share=None: print(what, flush=True)):
    print("in", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "repository" / "model").mkdir(parents=True)
    return tmp_path / "repository"


@pytest.fixture
def waiting(repository: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts processes that want to build in the repository, and hold it until their input ends."""
    with ExitStack() as stack:

        def start() -> subprocess.Popen[str]:
            command = [sys.executable, "-c", _WAITING, str(repository)]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.mark.parametrize("end", ["done", "killed"])
def test_builds_wait_for_each_other(repository: Path, waiting: Callable[[], subprocess.Popen[str]], end: str) -> None:
    one = waiting()
    assert line(one) == "in"
    others = [waiting(), waiting()]
    assert [line(other) for other in others] == [f"waiting for another build of {repository}"] * 2
    for process in others if end == "killed" else [one, *others]:
        assert process.stdin
        process.stdin.close()  # whichever of the others comes first, it does not stay
    if end == "killed":
        one.kill()
    assert one.wait(30) == (0 if end == "done" else -signal.SIGKILL)
    assert [line(other) for other in others] == ["in", "in"]
    assert [other.wait(30) for other in others] == [0, 0]
    assert not (repository / LOCK).exists()


def test_waiting_can_be_interrupted(repository: Path, waiting: Callable[[], subprocess.Popen[str]]) -> None:
    with locked(repository, unheard):
        other = waiting()
        assert line(other) == f"waiting for another build of {repository}"
        other.send_signal(signal.SIGINT)
        _, said = other.communicate(timeout=30)
        assert said.rstrip().endswith("KeyboardInterrupt")
        assert (repository / LOCK).exists()


def test_a_folder_is_made_for_what_comes_into_it(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    with pytest.raises(ZeroDivisionError), locked(inner, unheard):
        raise ZeroDivisionError
    assert not (tmp_path / "a").exists()

    with locked(inner, unheard):
        (inner / "model").mkdir()
    assert [path.name for path in inner.iterdir()] == ["model"]


def test_a_repository_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(RepositoryError, match=r"expected to write into .*; .*Not a directory"),
        locked(tmp_path / "file" / "repository", unheard),
    ):
        raise AssertionError
