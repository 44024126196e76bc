"""What is served stays what it was when the server started, whatever is built meanwhile.

Triton is given a repository of its own: copies of configurations and label files, and of each model the latest
version, by a link. A version that is asked for in a load request would not last, for Triton reads a pipeline's models
from the disk again when it loads the pipeline.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tricade.errors import CutOff
from tricade.publishing import at_rest, served
from tricade.versions import is_version

from .errors import BadRepository
from .repository import ServedModel, read_repository


@contextmanager
def pinned(repository: Path, into: Path) -> Iterator[list[ServedModel]]:
    """The models of a repository as they are now, in the folder `into`; raises `BadRepository`."""
    with ExitStack() as stack:
        try:
            with at_rest(repository):
                for model in read_repository(repository):
                    stack.enter_context(served(model.version_folder))
                    _pin(model, into / model.name)
        except (CutOff, OSError, shutil.Error) as error:
            raise BadRepository(f"{repository} cannot be served: {error}") from error
        yield read_repository(into)


def _pin(model: ServedModel, into: Path) -> None:
    into.mkdir(parents=True)
    for entry in model.folder.iterdir():
        if is_version(entry.name):
            continue
        if entry.is_dir():
            shutil.copytree(entry, into / entry.name, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(entry, into / entry.name)
    (into / model.version_folder.name).symlink_to(model.version_folder.resolve())
