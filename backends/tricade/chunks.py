"""How a classifier's crops are cut into batches: one width a batch, at most `max_batch` crops, least cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# What one more call costs, in pixels of crop width. Measured on two CPU cores: PP-OCR's recognizer takes 70 to
# 100 µs a column of 48 pixels whatever the batch, a call through Triton 1 to 3 ms.
CALL_COST = 32


@dataclass(frozen=True)
class Chunk:
    """Crops that go to the network together: their positions, and the width they are padded to."""

    positions: NDArray[np.int64]
    width: int

    @property
    def cost(self) -> int:
        """Columns of pixels."""
        return len(self.positions) * self.width


def chunks_of(widths: NDArray[np.int32], steps: Sequence[int], *, max_batch: int) -> list[Chunk]:
    """Cut crops of `widths` (n,) into chunks, costliest first; a chunk's width is the smallest of the ascending
    `steps` that holds its widest crop. Minimizes the columns to compute plus `CALL_COST` a chunk."""
    if len(widths) == 0:
        return []
    if len(steps) == 1:
        cuts = _equal_cuts(len(widths), max_batch)
        return [Chunk(np.arange(start, end), steps[0]) for start, end in pairwise(cuts)]
    order = np.argsort(widths, kind="stable").astype(np.int64)
    padded = np.asarray(steps)[np.searchsorted(np.asarray(steps), widths[order])]
    cuts = _equal_cuts(len(order), max_batch) if padded[0] == padded[-1] else _best_cuts(padded, max_batch)
    chunks = [Chunk(np.sort(order[start:end]), int(padded[end - 1])) for start, end in pairwise(cuts)]
    return sorted(chunks, key=lambda chunk: -chunk.cost)


def _equal_cuts(count: int, max_batch: int) -> list[int]:
    """Full batches first."""
    return [*range(0, count, max_batch), count]


def _best_cuts(padded: NDArray[np.int64], max_batch: int) -> list[int]:
    """Dynamic programming over crops in order of width: `best[i]` is the cost of the first i."""
    count = len(padded)
    best = np.zeros(count + 1)
    cut_before = np.zeros(count + 1, np.int64)
    for end in range(1, count + 1):
        starts = np.arange(max(0, end - max_batch), end)
        costs = best[starts] + (end - starts) * padded[end - 1] + CALL_COST
        choice = int(np.argmin(costs))
        best[end], cut_before[end] = costs[choice], starts[choice]
    cuts = [count]
    while cuts[-1] > 0:
        cuts.append(int(cut_before[cuts[-1]]))
    return cuts[::-1]
