"""One build at a time in a repository."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tricade.errors import CutOff
from tricade.publishing import recover

from .errors import RepositoryError
from .staging import STAGING
from .weights import Report

LOCK = ".tricade-lock"  # there while a build is at work


@contextmanager
def locked(repository: Path, report: Report) -> Iterator[None]:
    """Hold a repository for a whole build, with nothing left in it of builds that were killed.

    Waits for another build; raises `RepositoryError`. A folder that is made for the lock goes again if nothing else
    comes into it.
    """
    with ExitStack() as stack:
        try:
            stack.callback(_drop_empty, [path for path in (repository, *repository.parents) if not path.exists()])
            stack.enter_context(_alone(repository, report))
            recover(repository)
        except CutOff as error:
            raise RepositoryError(str(error)) from error
        except OSError as error:
            raise RepositoryError(f"expected to write into {repository}; {error}; choose another folder") from error
        _clear_killed(repository)
        yield


@contextmanager
def _alone(repository: Path, report: Report) -> Iterator[None]:
    file, told = repository / LOCK, False
    while True:
        repository.mkdir(parents=True, exist_ok=True)
        with _opened(file) as descriptor:
            if not _taken(descriptor):
                if not told:
                    report(f"waiting for another build of {repository}")
                told = True
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _lies_at(descriptor, file):  # else whoever had it has removed it
                try:
                    yield
                finally:
                    with suppress(OSError):
                        file.unlink()
                return


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDONLY | os.O_CREAT, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lies_at(descriptor: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False


def _clear_killed(repository: Path) -> None:
    """What builds left that were killed before they published: there is no other build now that it could be of."""
    for folder in repository.glob(f"{STAGING}*"):
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)


def _drop_empty(folders: list[Path]) -> None:
    """The innermost first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
