"""A part of the pictures that are sent, kept in a folder: what calibration and verification read later.

`tricade serve --samples` sets the variables of the environment that are read here; without them nothing is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from .decode import FORMATS
from .errors import BadSettings

FOLDER, EVERY, MOST = "TRICADE_SAMPLES", "TRICADE_SAMPLE_EVERY", "TRICADE_SAMPLES_MAX"
# MPO is a JPEG with further pictures behind the first.
SUFFIXES = {"JPEG": "jpg", "MPO": "jpg", "PNG": "png", "WEBP": "webp", "BMP": "bmp", "TIFF": "tiff"}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sampling:
    """Every `every`-th picture of a process, until `most` files are in the folder; it begins once that is there."""

    folder: Path
    every: int = 100
    most: int = 1000

    def as_environment(self) -> dict[str, str]:
        return {FOLDER: str(self.folder), EVERY: str(self.every), MOST: str(self.most)}


def sampling_from_environment(environment: Mapping[str, str]) -> Sampling | None:
    """None where nothing is to be kept; raises `BadSettings`."""
    if not environment.get(FOLDER):
        return None
    every, most = (_count(environment, name) for name in (EVERY, MOST))
    return Sampling(Path(environment[FOLDER]), every or Sampling.every, most or Sampling.most)


class Sampler:
    """Keeps pictures as the bytes that came; whatever goes wrong is said once, and ends it."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._seen = 0
        self._ended = False

    def offer(self, data: bytes) -> None:
        """A picture that has been decoded well; never raises."""
        if self._ended:
            return
        self._seen += 1
        if self._seen % self._sampling.every != 0 or not os.path.lexists(self._sampling.folder):
            return
        try:
            self._ended = not keep(data, self._sampling.folder, most=self._sampling.most)
        except Exception as error:  # a sample is never worth a request
            self._ended = True
            why = getattr(error, "strerror", None) or error
            _log.warning("tricade: no more pictures are kept in %s: %s", self._sampling.folder.resolve(), why)


def keep(data: bytes, folder: Path, *, most: int) -> bool:
    """Write the picture, unless it is there or the folder is full; returns whether there is room for more."""
    with Image.open(BytesIO(data), formats=FORMATS) as image:
        name = f"{hashlib.sha256(data).hexdigest()[:16]}.{SUFFIXES[image.format or '']}"
    with _alone_in(folder):
        there = {file.name for file in folder.iterdir() if not file.name.startswith(".")}
        if name not in there and len(there) < most:
            beside = folder / f".{name}"
            try:
                beside.write_bytes(data)
                beside.replace(folder / name)
            finally:
                beside.unlink(missing_ok=True)  # a full disk leaves half of it
            there.add(name)
    return len(there) < most


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Every instance is a process of its own; together they must not exceed the most."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _count(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name)
    if text is not None and not (text.isdecimal() and int(text) > 0):
        raise BadSettings(f"{name}: expected a whole number from 1, got {text!r}")
    return int(text) if text is not None else None
