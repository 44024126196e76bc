"""`--samples`: the folder is tried before anything starts, and sampling begins once the pipelines are warm."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from tricade.sampling import EVERY, FOLDER, MOST, Sampling

from .errors import BadSamples

LINK = "samples"


class Samples:
    """What the stubs get to know: a place in `beside` that leads to the folder when all is ready, not before.

    So no picture is kept that the server sends to itself.
    """

    def __init__(self, sampling: Sampling | None, beside: Path) -> None:
        self._sampling, self._link = sampling, beside / LINK
        if sampling is not None:
            _try(sampling.folder)

    def settle(self, environment: dict[str, str]) -> None:
        """Set what the stubs read; without sampling they find nothing, whatever was set before."""
        for name in (FOLDER, EVERY, MOST):
            environment.pop(name, None)
        if self._sampling is not None:
            environment.update(replace(self._sampling, folder=self._link).as_environment())

    def begin(self) -> None:
        if self._sampling is not None:
            self._link.symlink_to(self._sampling.folder.resolve())


def _try(folder: Path) -> None:
    """Make the folder, for its owner alone, and a file in it; raises `BadSamples`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise BadSamples(
            f"expected a folder for samples that can be made and written; {folder}: {error.strerror or error}; "
            "choose another: --samples"
        ) from error
