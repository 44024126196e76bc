"""Pictures to calibrate and to verify with: which of a folder's files, and whether they are any good for it.

Choosing them and their hash needs no decoding: a build that changes nothing goes no further.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tricade.decode import picture_from_bytes
from tricade.errors import BadImage
from tricade.onnx_network import cores

from .errors import SampleError
from .spec import Limits

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
MIN_PICTURES = 8  # different ones; fewer say nothing about what a network will see
MIN_DIFFERENCE = 2.0  # of 255: below it a thumbnail is like the mean of all
THUMBNAIL = (16, 16)
NAMED = 3  # unreadable pictures in a message
LIMITS = Limits()


@dataclass(frozen=True)
class Pictures:
    """Encoded pictures in files; equal hashes mean equal contents, whatever they are called."""

    files: tuple[Path, ...]
    sha256: str
    where: str  # the key of the pipeline file that names the folder

    def encoded(self, place: int) -> bytes:
        """One of `files`, as it is."""
        return _read(self.files[place], self.where)

    def check(self, limits: Limits = LIMITS) -> None:
        """Decode them all, as the server does; raises `SampleError` for damaged ones, and where all are alike."""
        with ThreadPoolExecutor(cores()) as pool:
            looked = list(pool.map(lambda place: self._thumbnail(place, limits), range(len(self.files))))
        damaged = [
            f"{file.name} ({why})" for file, why in zip(self.files, looked, strict=True) if isinstance(why, BadImage)
        ]
        if damaged:
            more = f" and {len(damaged) - NAMED} more" if len(damaged) > NAMED else ""
            raise SampleError(
                f"{self.where}: expected pictures that can be decoded; {len(damaged)} of {len(self.files)} cannot: "
                f"{', '.join(damaged[:NAMED])}{more}; remove or replace them"
            )
        thumbnails = np.stack([thumbnail for thumbnail in looked if not isinstance(thumbnail, BadImage)])
        if np.abs(thumbnails - thumbnails.mean(axis=0)).mean(axis=(1, 2)).max() < MIN_DIFFERENCE:
            raise SampleError(
                f"{self.where}: expected pictures that differ, as those do that will be served; the "
                f"{len(self.files)} in {self.files[0].parent} look all alike; add others"
            )

    def _thumbnail(self, place: int, limits: Limits) -> NDArray[np.float32] | BadImage:
        """Grey (16, 16), or why there is none."""
        try:
            picture = picture_from_bytes(self.encoded(place), max_bytes=limits.max_bytes, max_pixels=limits.max_pixels)
            pixels = picture.pixels
        except BadImage as error:
            return error
        small = Image.fromarray(pixels).convert("L").resize(THUMBNAIL, Image.Resampling.BOX)
        return np.asarray(small, np.float32)


def pictures_from(folder: Path, *, count: int, where: str) -> Pictures:
    """At most `count` of the folder's pictures, evenly over their names; raises `SampleError`."""
    found = _found(folder, where)
    chosen = tuple(found[place * len(found) // count] for place in range(count)) if len(found) > count else found
    with ThreadPoolExecutor(cores()) as pool:
        digests = sorted(pool.map(lambda file: hashlib.sha256(_read(file, where)).digest(), chosen))
    if (different := len(set(digests))) < MIN_PICTURES:
        raise SampleError(_too_few(folder, found, chosen, different, where))
    return Pictures(chosen, hashlib.sha256(b"".join(digests)).hexdigest(), where)


def pictures_below(folder: Path) -> tuple[Path, ...]:
    """By their suffix, sorted; hidden ones are somebody's thumbnails."""
    names = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES)
    found = [folder / name for name in names if not any(part.startswith(".") for part in name.parts)]
    return tuple(file for file in found if file.is_file())


def _found(folder: Path, where: str) -> tuple[Path, ...]:
    if not folder.is_dir():
        raise SampleError(
            f"{where}: expected a folder of pictures; {folder} is {'a file' if folder.exists() else 'not there'}; "
            f"name one with at least {MIN_PICTURES} pictures of what will be served"
        )
    files = pictures_below(folder)
    if not files:
        raise SampleError(
            f"{where}: expected pictures ({', '.join(suffix[1:] for suffix in SUFFIXES)}); {folder} holds none; "
            f"put at least {MIN_PICTURES} pictures of what will be served there"
        )
    return files


def _read(file: Path, where: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SampleError(f"{where}: expected a picture, {file} cannot be read: {error.strerror}") from error


def _too_few(folder: Path, found: Sequence[Path], chosen: Sequence[Path], different: int, where: str) -> str:
    expected = f"{where}: expected at least {MIN_PICTURES} different pictures"
    if len(chosen) < min(MIN_PICTURES, len(found)):
        section = where.rpartition(".")[0]
        return f"{expected}; {section}.count takes {len(chosen)} of the {len(found)} in {folder}; raise it"
    copies = f", of which {different} differ" if different < len(chosen) else ""
    return f"{expected}; got {len(chosen)} from {folder}{copies}; add pictures of what will be served"
