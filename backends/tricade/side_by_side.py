"""Rows of a batch on several cores at once: each core computes whole rows, so that none waits for another in a layer.

Threads that share a layer meet at its end; where other processes want the cores too, the one that was pushed aside
keeps all of them waiting. docs/performance.md has the figures for 2 and 16 cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .stage import Arrays

Run = Callable[[Arrays], Sequence[NDArray[Any]]]  # all outputs, their first dimension the batch

WORTH_S = 0.01  # a batch that takes less is not worth handing to threads: networks of a millisecond a row lose 7 %


class SideBySide:
    """`shared` computes a batch with `threads` threads and may be called by several at once, `alone` with the one that
    calls it."""

    def __init__(self, shared: Run, alone: Run, *, threads: int) -> None:
        self._shared, self._alone, self._threads = shared, alone, threads
        self._pool = ThreadPoolExecutor(threads)
        self._s_a_byte = 0.0  # of input: the least so far, thus not that of a first run

    def __call__(self, inputs: Arrays) -> Sequence[NDArray[Any]]:
        size = sum(array.nbytes for array in inputs.values())
        began = time.perf_counter()
        outputs = self._apart(inputs) if size * self._s_a_byte > WORTH_S else self._shared(inputs)
        took = (time.perf_counter() - began) / max(1, size)
        self._s_a_byte = min(self._s_a_byte or took, took)
        return outputs

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False)

    def _apart(self, inputs: Arrays) -> Sequence[NDArray[Any]]:
        rows = len(next(iter(inputs.values())))
        done: list[Sequence[NDArray[Any]]] = []
        for run, parts in self._waves(rows):
            given = [{name: array[part] for name, array in inputs.items()} for part in parts]
            done += [run(given[0])] if len(given) == 1 else self._pool.map(run, given)
        return done[0] if len(done) == 1 else [np.concatenate(each) for each in zip(*done, strict=True)]

    def _waves(self, rows: int) -> Iterator[tuple[Run, list[slice]]]:
        """As many rows for each thread as all can have, then what is left, which all threads share."""
        each = rows // self._threads
        if each:
            yield self._alone, [slice(part * each, (part + 1) * each) for part in range(self._threads)]
        if left := rows % self._threads:
            yield self._shared, [slice(row, row + 1) for row in range(rows - left, rows)]
