"""A build changes a repository in one step, which either happened or did not.

What is new is written whole into a folder beside the models. Then a journal of the moves that are left is renamed
into place: from that moment the build is published. Whoever comes next carries a journal that was left behind out to
its end, as often as it takes.

Locks are `flock`s, which end with the process that holds them: on the repository's folder, exclusive while files are
moved and shared while they are read; on a version folder, shared while it is served.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from .errors import CutOff

JOURNAL = ".tricade-journal"
NEW, OLD = "new", "old"  # below the folder of a build, each laid out as the repository is


@dataclass(frozen=True)
class Journal:
    """All paths as in the repository; what is removed goes first."""

    staging: str  # the folder of the build that wrote it
    removed: tuple[str, ...]
    placed: tuple[str, ...]


def commit(repository: Path, journal: Journal) -> None:
    """Publish; raises `OSError` where nothing has changed, `CutOff` where it is published and not yet in place."""
    written = repository / journal.staging / JOURNAL
    written.write_text(json.dumps(asdict(journal)), encoding="utf-8")
    flush(written)
    with _held(repository, fcntl.LOCK_EX):
        os.replace(written, repository / JOURNAL)  # noqa: PTH105 - beside the renames that follow
        _finish(repository)


def recover(repository: Path) -> None:
    """Carry out what a build that was killed had published; raises `CutOff` where that cannot be done from here."""
    if not is_journal_in(repository):
        return
    try:
        with _held(repository, fcntl.LOCK_EX):  # a build that is alive is done with it by then
            if is_journal_in(repository):
                _finish(repository)
    except OSError as error:
        raise _cut_off(repository, error) from error


@contextmanager
def at_rest(repository: Path) -> Iterator[None]:
    """Hold still what is read there, after `recover`; raises `CutOff`."""
    while True:
        recover(repository)
        with _shared(repository):
            if not is_journal_in(repository):
                yield
                return


def is_cut_off(repository: Path) -> bool:
    """Whether a build that was killed has published what is not all in place."""
    with _shared(repository):
        return is_journal_in(repository)


def is_journal_in(repository: Path) -> bool:
    return (repository / JOURNAL).exists()


def served(version_folder: Path) -> AbstractContextManager[None]:
    """Keeps builds from removing it."""
    return _shared(version_folder)


def is_served(version_folder: Path) -> bool:
    try:
        with _held(version_folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return False
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False


def flush(path: Path) -> None:
    """Down to the disk: a file, or which names a folder has."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # file systems that know it of files only
            raise
    finally:
        os.close(descriptor)


def _finish(repository: Path) -> None:
    """Make the moves that are left; the repository is locked."""
    try:
        flush(repository)  # the journal, before any move gets there
        journal = _journal_from(repository / JOURNAL)
        staging = repository / journal.staging
        for path in journal.removed:
            _move(repository / path, staging / OLD / path, again=False)
        for path in journal.placed:
            _move(staging / NEW / path, repository / path, again=True)
        _drop_empty(repository, journal.removed)
        for folder in {(repository / path).parent for path in (*journal.removed, *journal.placed)}:
            if folder.is_dir():
                flush(folder)
        (repository / JOURNAL).unlink()
        flush(repository)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _cut_off(repository, error) from error
    shutil.rmtree(staging, ignore_errors=True)


def _move(source: Path, target: Path, *, again: bool) -> None:
    """Unless that is done: there is no source any more or, where it is not moved over something, a target."""
    if os.path.lexists(source) and (again or not os.path.lexists(target)):
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(source, target)  # noqa: PTH105 - also of folders


def _drop_empty(repository: Path, removed: Iterable[str]) -> None:
    for path in removed:
        parent = (repository / path).parent
        while parent != repository and parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
            parent = parent.parent


def _journal_from(file: Path) -> Journal:
    data = json.loads(file.read_bytes())
    return Journal(data["staging"], tuple(data["removed"]), tuple(data["placed"]))


def _cut_off(repository: Path, error: Exception) -> CutOff:
    return CutOff(
        f"expected to put in place what a build has published to {repository}; {error}; nothing is lost: make room, "
        "or give the right to write there, and run: tricade build PIPELINE"
    )


@contextmanager
def _held(folder: Path, how: int) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _shared(folder: Path) -> Iterator[None]:
    with ExitStack() as stack:
        with suppress(OSError):  # no such folder, or a file system without locks
            stack.enter_context(_held(folder, fcntl.LOCK_SH))
        yield
