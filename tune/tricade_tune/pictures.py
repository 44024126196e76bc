"""The pictures of a folder, as they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tricade_build.pictures import SUFFIXES, pictures_below
from tricade_client import Client, ServerRefused, TricadeError

from .errors import BadPictures

MOST = 256  # of a folder, spread evenly over its names
CALL_S = 30.0


@dataclass(frozen=True)
class Picture:
    """A file and its bytes."""

    file: Path
    encoded: bytes


def pictures_in(folder: Path) -> list[Picture]:
    """Those in the folder and below it; raises `BadPictures`."""
    files = pictures_below(folder)
    if not files:
        kinds = ", ".join(suffix[1:] for suffix in SUFFIXES)
        raise BadPictures(
            f"--images: expected pictures ({kinds}); {folder} holds none; put such as will be served there"
        )
    count = min(MOST, len(files))
    return [_read(files[place * len(files) // count]) for place in range(count)]


def counted(client: Client, pictures: Sequence[Picture]) -> list[int]:
    """What the served pipeline finds in each; raises `BadPictures` for one that it refuses."""
    counts: list[int] = []
    stream = client.stream([picture.encoded for picture in pictures], timeout_s=CALL_S, return_errors=True)
    for picture, found in zip(pictures, stream, strict=True):
        if isinstance(found, ServerRefused):
            raise BadPictures(f"--images: expected pictures that the pipeline answers; {picture.file}: {found}")
        if isinstance(found, TricadeError):
            raise found
        counts.append(len(found))
    return counts


def _read(file: Path) -> Picture:
    try:
        return Picture(file, file.read_bytes())
    except OSError as error:
        raise BadPictures(f"--images: expected a picture, {file} cannot be read: {error.strerror}") from error
