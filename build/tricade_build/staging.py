"""Writing beside the models, and publishing what was written: all of it or nothing."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from tricade.publishing import NEW, OLD, Journal, commit, flush, is_journal_in

STAGING = ".tricade-"  # begins the name of a folder in which a build writes

New = Mapping[PurePosixPath, bytes | Path]  # by path in the repository; a path is a file to link or copy


def publish(repository: Path, new: New, removed: Sequence[PurePosixPath]) -> None:
    """In one step; raises `OSError` where nothing has changed, `CutOff` where it is published and not yet in place."""
    repository.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=repository, prefix=STAGING))
    try:
        commit(repository, _staged(repository, staging, new, removed))
    finally:
        if not is_journal_in(repository):  # else it is needed still
            shutil.rmtree(staging, ignore_errors=True)


def _staged(repository: Path, staging: Path, new: New, removed: Sequence[PurePosixPath]) -> Journal:
    """Everything written and on the disk, so that only renames are left."""
    (staging / NEW).mkdir()
    for path, content in new.items():
        _write(staging / NEW / path, content)
    for path in removed:
        (staging / OLD / path).parent.mkdir(parents=True, exist_ok=True)
    placed = _moves(staging / NEW, repository, PurePosixPath())
    journal = Journal(staging.name, removed=tuple(map(str, removed)), placed=tuple(map(str, placed)))
    _check_moves(repository, journal)
    for folder, _, names in os.walk(staging, topdown=False):
        for name in names:
            flush(Path(folder, name))
        flush(Path(folder))
    return journal


def _write(file: Path, content: bytes | Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        file.write_bytes(content)
        return
    try:
        os.link(content, file)
    except OSError:  # a file system without hard links, or somebody else's file
        shutil.copy2(content, file)


def _moves(new: Path, repository: Path, folder: PurePosixPath) -> Iterator[PurePosixPath]:
    """The fewest: a folder that the repository does not have is moved as a whole."""
    for entry in sorted((new / folder).glob("*")):
        path = folder / entry.name
        if entry.is_dir() and (repository / path).is_dir():
            yield from _moves(new, repository, path)
        else:
            yield path


def _check_moves(repository: Path, journal: Journal) -> None:
    """Raise `OSError` for what would fail once it is too late: a folder that is not ours to change, another disk."""
    device = (repository / journal.staging).stat().st_dev
    touched = {(repository / path).parent for path in (*journal.removed, *journal.placed)}
    touched |= {repository / path for path in journal.removed}  # a folder that moves is changed itself
    for folder in sorted(touched):
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        if folder.is_dir() and folder.stat().st_dev != device:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(folder))
