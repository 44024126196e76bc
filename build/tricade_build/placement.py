"""Placing files in a model repository: all or nothing, and nobody else's models."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from .errors import RepositoryError
from .render import VERSION, Files

STAGING = ".tricade-"  # what a build writes before it renames
_OWNER = re.compile(r"# Pipeline ([a-z][a-z0-9_]*): ")


def owner_of(folder: Path) -> str | None:
    """The pipeline that a model belongs to, by the first line of its configuration."""
    try:
        with (folder / "config.pbtxt").open(encoding="utf-8") as file:
            found = _OWNER.match(file.readline())
    except (OSError, UnicodeDecodeError):
        return None
    return found.group(1) if found else None


def check_owners(repository: Path, pipeline: str, models: Iterable[str]) -> None:
    """Refuse to write into a folder that is not this pipeline's."""
    for model in models:
        folder = repository / model
        if folder.exists() and (owner := owner_of(folder)) != pipeline:
            whose = f"belongs to pipeline {owner}" if owner else "was not written by tricade"
            raise RepositoryError(
                f"expected {folder} to be pipeline {pipeline}'s, it {whose}; move it away, or rename the pipeline"
            )


def place(repository: Path, pipeline: str, files: Files, *, remove: Iterable[PurePosixPath] = ()) -> list[str]:
    """Write what differs, remove what the pipeline no longer has; returns the models that went."""
    models = {path.parts[0] for path in files}
    check_owners(repository, pipeline, models)
    present = [folder for folder in sorted(repository.glob("*")) if owner_of(folder) == pipeline]
    gone = [folder for folder in present if folder.name not in models]
    stale = [file for folder in present if folder.name in models for file in _stale(repository, folder, files)]
    try:
        repository.mkdir(parents=True, exist_ok=True)
        _clear_killed(repository)
        _swap(repository, files, [*gone, *stale, *(repository / path for path in remove)])
    except OSError as error:
        raise RepositoryError(f"expected to write into {repository}; {error}; it is as it was before") from error
    return [folder.name for folder in gone]


def _stale(repository: Path, folder: Path, files: Files) -> list[Path]:
    """Configuration that is no longer rendered. What lies in a version folder is a target's matter."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and file.relative_to(folder).parts[0] != VERSION
        and PurePosixPath(file.relative_to(repository).as_posix()) not in files
    ]


def _swap(repository: Path, files: Files, remove: list[Path]) -> None:
    """Write everything beside, then rename; whatever fails, the renames are undone."""
    with _staging(repository) as staging, ExitStack() as undo:
        new, old = staging / "new", staging / "old"
        written = [path for path, data in files.items() if not _same(repository / path, data)]
        for path in written:
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_bytes(files[path])
        for present in remove:
            _move(present, old / present.relative_to(repository), undo)
        for path in written:
            if (repository / path).exists():
                _replace(new / path, repository / path, old / path, undo)
            else:
                _move(new / path, repository / path, undo)
        undo.pop_all()
    _drop_empty(repository, remove)


def _move(source: Path, target: Path, undo: ExitStack) -> None:
    for parent in reversed(target.parents):
        if not parent.exists():
            parent.mkdir()
            undo.callback(shutil.rmtree, parent, ignore_errors=True)
    os.replace(source, target)  # noqa: PTH105 - also of folders
    undo.callback(os.replace, target, source)


def _replace(new: Path, present: Path, old: Path, undo: ExitStack) -> None:
    """Over the file that is there, which at no moment is missing."""
    old.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(present, old)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
        shutil.copy2(present, old)  # a file system without hard links
    os.replace(new, present)  # noqa: PTH105 - as in `_move`
    undo.callback(os.replace, old, present)


@contextmanager
def _staging(repository: Path) -> Iterator[Path]:
    """A folder that is locked while its build lives."""
    with tempfile.TemporaryDirectory(dir=repository, prefix=STAGING) as folder:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(folder)
        finally:
            os.close(descriptor)


def _clear_killed(repository: Path) -> None:
    """What builds left that were killed: theirs is the lock that nobody holds."""
    for folder in repository.glob(f"{STAGING}*"):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue  # another build is at work
        finally:
            os.close(descriptor)


def _same(file: Path, data: bytes) -> bool:
    return file.is_file() and file.stat().st_size == len(data) and file.read_bytes() == data


def _drop_empty(repository: Path, removed: list[Path]) -> None:
    for path in removed:
        parent = path.parent
        while parent != repository and parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
            parent = parent.parent
