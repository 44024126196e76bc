"""Tiles: overlapping parts of a large picture that the detector sees one by one, and so larger."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .settings import Size

Tiles = NDArray[np.int32]  # (t, 5): image, left, top, right, bottom in the image's pixels


def tiles_of(image: int, picture: Size, *, tile: Size | None, overlap: float) -> Tiles:
    """The picture (height, width) as a whole and, where it is larger than a `tile`, tiles of that size that share
    at least `overlap` of their side with their neighbours."""
    height, width = picture
    whole = (image, 0, 0, width, height)
    if tile is None or (height <= tile[0] and width <= tile[1]):
        return np.array([whole], np.int32)
    rows, columns = (_starts(side, part, overlap) for side, part in zip(picture, tile, strict=True))
    parts = [
        (image, left, top, min(left + tile[1], width), min(top + tile[0], height)) for top in rows for left in columns
    ]
    return np.array([whole, *parts], np.int32)


def _starts(side: int, part: int, overlap: float) -> list[int]:
    """Where parts begin: evenly spread, the first at one end and the last at the other."""
    if side <= part:
        return [0]
    count = math.ceil((side - part) / (part * (1 - overlap))) + 1
    return [round(index * (side - part) / (count - 1)) for index in range(count)]
