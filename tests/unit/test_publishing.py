"""Publishing: a build that is killed at any moment has changed a repository as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from tricade.errors import CutOff
from tricade.publishing import JOURNAL, at_rest, is_cut_off, is_journal_in, recover, served
from tricade.versions import latest_folder, versions
from tricade_build.errors import RepositoryError
from tricade_build.lock import LOCK, locked
from tricade_build.placement import place
from tricade_build.render import Files, comment
from tricade_build.weights import Weights, unheard
from tricade_server.errors import BadRepository
from tricade_server.pinned import pinned

ENSEMBLE = 'platform: "ensemble" ensemble_scheduling { step { model_name: "p_net" } }'
Tree = dict[str, tuple[bytes, int]]


def files(**configs: str) -> Files:
    """The configurations of a pipeline `p`; `configs` are backends of its models."""
    backends = {"p_net": "a", "p_label": "b"} | configs
    texts = {"p": ENSEMBLE} | {model: f'backend: "{name}"' for model, name in backends.items()}
    found = {PurePosixPath(model, "config.pbtxt"): (comment("p", "p.yaml") + t).encode() for model, t in texts.items()}
    found[PurePosixPath("p_net", "configs", "onnxruntime.pbtxt")] = texts["p_net"].encode()
    return found | {PurePosixPath(model, "1", ".gitkeep"): b"" for model in ("p", "p_label")}


def weights(repository: Path, model: str, **contents: bytes) -> Weights:
    """`onnx=b"…"` is model.onnx; what is not given, or is there already, is kept as it is."""
    kept = {path.name: path for path in latest_folder(repository / model).glob("*")}
    given = {f"model.{name}": data for name, data in contents.items()}
    new = {name: data for name, data in given.items() if name not in kept or kept[name].read_bytes() != data}
    return Weights({}, {**kept, **new}, built=bool(new))


def first(repository: Path) -> None:
    """Two versions of `p_net`, a model and a label file that the next build does away with, and others' folders."""
    old = files(p_old="old") | {PurePosixPath("p_label", "old", "names.txt"): b"x\n"}
    for onnx in (b"first", b"second"):
        nets = {"p_net": weights(repository, "p_net", onnx=onnx), "p_old": weights(repository, "p_old", onnx=b"o")}
        place(repository, "p", old, nets)
    (repository / "mine").mkdir()
    (repository / "q").mkdir()
    (repository / "q" / "config.pbtxt").write_text(comment("q", "q.yaml"))


def second(repository: Path) -> None:
    """A plan beside the same graph, a new model, other configurations."""
    new = files(p_net="c", p_label="d", p_new="e") | {PurePosixPath("p_label", "names", "net.txt"): b"y\n"}
    nets = {"p_net": weights(repository, "p_net", plan=b"plan"), "p_new": weights(repository, "p_new", onnx=b"n")}
    place(repository, "p", new, nets)


def tree(repository: Path) -> Tree:
    """Every file's contents and time of writing, folders that are empty, and nothing of builds at work."""
    return {
        path.relative_to(repository).as_posix(): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(repository.rglob("*"))
        if not path.relative_to(repository).parts[0].startswith(".tricade-") and (path.is_file() or not [*path.iterdir()])
    }  # fmt: skip


def contents(tree: Tree) -> dict[str, bytes]:
    return {name: data for name, (data, _) in tree.items()}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed takes nothing from the disk, so that nothing here waits for it."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    first(tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def new(repository: Path, tmp_path: Path) -> dict[str, bytes]:
    """What the second build makes of it when nobody kills it."""
    other = Path(shutil.copytree(repository, tmp_path / "unhurt"))
    second(other)
    return contents(tree(other))


STEPS = ("open", "os.rename", "os.link", "os.mkdir", "os.rmdir", "os.remove")


def killed(repository: Path, work: Callable[[Path], None], *, at: int) -> bool:
    """Whether `work` was killed in a process of its own, before the step `at` that it takes in the repository."""
    child = os.fork()
    if child == 0:
        done: list[str] = []

        def step(event: str, arguments: tuple[Any, ...]) -> None:
            if event in STEPS and str(repository) in str(arguments[:2]):
                done.append(event)
                if len(done) == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(step)
            work(repository)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def kills(repository: Path, work: Callable[[Path], None], copies: Path) -> Iterator[Path]:
    """A copy of the repository for each moment at which `work` can be killed; the last one has lived."""
    at, hurt = 1, True
    while hurt:
        copy = Path(shutil.copytree(repository, copies / str(at), symlinks=True))
        hurt = killed(copy, work, at=at)
        yield copy
        at += 1


def test_a_kill_at_any_moment_leaves_the_old_state_or_the_new_one(
    repository: Path, new: dict[str, bytes], tmp_path: Path
) -> None:
    old, states = tree(repository), []
    for copy in kills(repository, second, tmp_path / "copies"):
        if is_journal_in(copy):
            states.append("published")
            recover(copy)
            assert contents(tree(copy)) == new
        elif tree(copy) == old:
            states.append("old")
        else:
            assert contents(tree(copy)) == new
            states.append("done")
        with locked(copy, unheard):
            assert [path.name for path in copy.glob(".tricade-*")] == [LOCK]
        assert not list(copy.glob(".tricade-*"))

    assert states == sorted(states, key=["old", "published", "done"].index)
    counted = {state: states.count(state) for state in states}
    # Writing each of 7 files, then the moves: 3 removals, 6 places.
    assert counted["old"] > 7
    assert counted["published"] > 9
    assert counted["done"] > 1


def cut_off(repository: Path, *, moves: int) -> None:
    """Kill the second build after so many moves."""

    def work(repository: Path) -> None:
        done: list[str] = []

        def step(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "os.rename":
                done.append(event)
                if len(done) == moves + 2:  # the first one publishes
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(step)
        second(repository)

    assert killed(repository, work, at=0)
    assert is_cut_off(repository)


def test_a_recovery_that_is_killed_can_be_repeated(repository: Path, new: dict[str, bytes], tmp_path: Path) -> None:
    old = tree(repository)
    cut_off(repository, moves=0)
    assert tree(repository) == old

    hurt = 0
    for number, copy in enumerate(kills(repository, recover, tmp_path / "once")):
        hurt += is_journal_in(copy)
        for twice in kills(copy, recover, tmp_path / "twice" / copy.name) if number % 6 == 0 else ():
            recover(twice)
            assert contents(tree(twice)) == new
        recover(copy)
        assert contents(tree(copy)) == new
    assert hurt > 9


def test_whoever_reads_finishes_it_first(repository: Path, new: dict[str, bytes], tmp_path: Path) -> None:
    cut_off(repository, moves=3)

    with at_rest(repository):
        assert contents(tree(repository)) == new

    assert not is_cut_off(repository)


def test_whoever_cannot_finish_it_refuses(
    repository: Path, new: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(repository, moves=3)

    def refusing(source: Any, target: Any) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refusing)
        said = "Read-only file system; nothing is lost: .* run: tricade build PIPELINE"
        with pytest.raises(CutOff, match=said), at_rest(repository):
            raise AssertionError
        with pytest.raises(BadRepository, match=said), pinned(repository, tmp_path / "pinned"):
            raise AssertionError
        with pytest.raises(RepositoryError, match=said), locked(repository, unheard):
            raise AssertionError
    with locked(repository, unheard):
        assert contents(tree(repository)) == new


def test_a_journal_that_cannot_be_read_is_not_served(repository: Path) -> None:
    (repository / JOURNAL).write_text("{")

    with pytest.raises(CutOff, match="expected to put in place what a build has published"):
        recover(repository)


def test_an_error_before_it_is_published_changes_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(repository)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for module, name in ((Path, "write_bytes"), (os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(RepositoryError, match=r"No space.*it is as it was before"):
                second(repository)
        assert tree(repository) == before
        assert not list(repository.glob(".tricade-*"))


def test_a_folder_that_cannot_be_changed_is_seen_before(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, access = tree(repository), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "p_label" and access(path, mode))

    with pytest.raises(RepositoryError, match=r"Permission denied: '.*/p_label'; it is as it was before"):
        second(repository)

    assert tree(repository) == before


@pytest.mark.parametrize("moves", [0, 1, 4, 8])
def test_an_error_after_it_is_published_loses_nothing(
    repository: Path, new: dict[str, bytes], moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, done = os.replace, []

    def failing(source: Any, target: Any) -> None:
        done.append(target)
        if len(done) == moves + 2:  # the first one publishes
            raise OSError(5, "Input/output error")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(RepositoryError, match="Input/output error; nothing is lost"):
            second(repository)
    recover(repository)

    assert contents(tree(repository)) == new


def test_nothing_is_moved_before_what_it_depends_on_is_on_the_disk(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a machine that loses its power."""
    synced: set[Path] = set()
    moves: list[Path] = []
    replace, unlink = os.replace, Path.unlink

    def moving(source: Any, target: Any) -> None:
        if not moves:
            assert target == repository / JOURNAL
            staging = source.parent
            assert {staging, *staging.rglob("*")} <= synced
            synced.clear()
        else:
            assert repository in synced  # and so the journal
        moves.append(target)
        replace(source, target)

    def removing(file: Path, missing_ok: bool = False) -> None:
        if file == repository / JOURNAL:
            placed = [path for path in moves[1:] if not path.relative_to(repository).parts[0].startswith(".tricade-")]
            assert len(placed) == 6
            assert {path.parent for path in placed} <= synced
        unlink(file, missing_ok)

    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(Path(f"/proc/self/fd/{descriptor}").readlink()))
    monkeypatch.setattr(os, "replace", moving)
    monkeypatch.setattr(Path, "unlink", removing)
    second(repository)

    assert moves


def test_versions_are_added_and_never_changed(repository: Path) -> None:
    model, before = repository / "p_net", tree(repository)
    assert versions(model) == (1, 2)

    second(repository)

    assert versions(model) == (2, 3)
    assert {path.name: path.read_bytes() for path in (model / "3").iterdir()} == {
        "model.onnx": b"second", "model.plan": b"plan",
    }  # fmt: skip
    assert (model / "2" / "model.onnx").samefile(model / "3" / "model.onnx")
    assert tree(repository)["p_net/2/model.onnx"] == before["p_net/2/model.onnx"]
    assert not (model / "2" / "model.plan").exists()
    assert versions(repository / "p_new") == (1,)
    assert not (repository / "p_old").exists()
    assert not (repository / "p_label" / "old").exists()
    assert (repository / "mine").is_dir()


def test_the_same_again_is_not_even_touched(repository: Path) -> None:
    second(repository)
    before = tree(repository), repository.stat().st_mtime_ns

    second(repository)

    assert (tree(repository), repository.stat().st_mtime_ns) == before


def test_a_file_system_without_hard_links_gets_copies(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(source: Any, target: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", without)

    second(repository)

    graphs = [repository / "p_net" / number / "model.onnx" for number in "23"]
    assert [graph.read_bytes() for graph in graphs] == [b"second", b"second"]
    assert not graphs[0].samefile(graphs[1])


def test_a_version_that_is_served_stays(repository: Path) -> None:
    model = repository / "p_net"
    with served(model / "2"):
        for plan in (b"3", b"4", b"5"):
            place(repository, "p", files(), {"p_net": weights(repository, "p_net", plan=plan)})
        assert versions(model) == (2, 4, 5)

    place(repository, "p", files(), {"p_net": weights(repository, "p_net")})

    assert versions(model) == (4, 5)


def test_what_was_pinned_stays(repository: Path, tmp_path: Path) -> None:
    (repository / "q" / "config.pbtxt").unlink()
    old = contents(tree(repository))
    with pinned(repository, tmp_path / "pinned") as models:
        for plan in (b"3", b"4", b"5"):
            place(repository, "p", files(p_net="x", p_old="y"), {"p_net": weights(repository, "p_net", plan=plan)})

        assert [model.name for model in models] == ["p_label", "p_net", "p_old", "p"]
        assert {model.name: model.version_folder.name for model in models} == {
            "p": "1", "p_label": "1", "p_net": "2", "p_old": "1",
        }  # fmt: skip
        for model in models:
            for file in (file for file in model.folder.rglob("*") if file.is_file()):
                name = file.relative_to(tmp_path / "pinned").as_posix()
                assert file.read_bytes() == old[name], name
        assert (tmp_path / "pinned" / "p_net" / "2" / "model.onnx").read_bytes() == b"second"
