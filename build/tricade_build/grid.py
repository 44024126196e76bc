"""The cells of a one-stage detector: one for each stride-sized square of the input, row by row, stride after stride."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STRIDES = ((8, 16, 32), (8, 16, 32, 64))  # of P5 and P6 networks


def strides_of(size: tuple[int, int], count: int) -> tuple[int, ...] | None:
    """The strides with which an input of this height and width has `count` cells."""
    return next((strides for strides in STRIDES if count in _counts(size, strides)), None)


def cells_of(size: tuple[int, int], strides: tuple[int, ...]) -> NDArray[np.float32]:
    """Column, row and stride of each cell, [cells, 3]."""
    height, width = size
    parts = []
    for stride in strides:
        rows, columns = np.mgrid[: height // stride, : width // stride]
        parts.append(np.stack([columns, rows, np.full_like(rows, stride)], axis=-1).reshape(-1, 3))
    return np.concatenate(parts).astype(np.float32)


def _counts(size: tuple[int, int], strides: tuple[int, ...]) -> tuple[int, ...]:
    height, width = size
    if height % strides[-1] or width % strides[-1]:
        return ()
    return (sum((height // stride) * (width // stride) for stride in strides),)
