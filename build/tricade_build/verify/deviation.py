"""How far the candidate's numbers are from fp32's: tensor by tensor, over all samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tricade.stage import Arrays

from .verification import Deviation

Histogram = NDArray[np.int64]  # (len(EDGES),): how many values are equal, then how many errors lie in each bin

# Rows of these may come in another order: what they mean is compared instead.
UNORDERED = frozenset({"CANDIDATES", "INDEX"})
LOWEST, HIGHEST, PER_DECADE = -8, 4, 5  # powers of ten; errors beyond count in the outermost bins
EDGES = np.logspace(LOWEST, HIGHEST, (HIGHEST - LOWEST) * PER_DECADE + 1)
BLOCK = 1 << 16  # values at a time: what is computed of them fits into a core's cache


@dataclass
class _Sum:
    largest: float = 0.0
    total: float = 0.0
    values: int = 0
    not_finite: int = 0
    histogram: Histogram = field(default_factory=lambda: np.zeros(len(EDGES), np.int64))


class Deviations:
    """Sums over samples; no sample is kept."""

    def __init__(self) -> None:
        self._sums: dict[str, _Sum] = {}

    def add(self, reference: Arrays, candidate: Arrays) -> dict[str, int]:
        """Compare the tensors that both have; by tensor how many values are not finite, where there are any."""
        found = {}
        for name in reference.keys() & candidate.keys():
            expected, got = reference[name], candidate[name]
            if name in UNORDERED and got.dtype.kind in "iu":
                continue
            here = self._sums.setdefault(name, _Sum())
            if name in UNORDERED or expected.shape != got.shape:
                not_finite = max(0, _not_finite(got) - _not_finite(expected))
            else:
                not_finite = _compare(here, expected, got)
            here.not_finite += not_finite
            if not_finite:
                found[name] = not_finite
        return found

    @property
    def by_tensor(self) -> dict[str, Deviation]:
        return {
            name: Deviation(found.largest, found.total / max(1, found.values), found.values, found.not_finite)
            for name, found in sorted(self._sums.items())
        }

    @property
    def histograms(self) -> Mapping[str, Histogram]:
        """Of the tensors whose values were compared."""
        return {name: found.histogram.copy() for name, found in sorted(self._sums.items()) if found.values}


def _compare(here: _Sum, expected: NDArray[Any], got: NDArray[Any]) -> int:
    """How many are not finite, though expected to be."""
    expected, got = expected.reshape(-1), got.reshape(-1)
    return sum(
        _compare_block(here, expected[at : at + BLOCK], got[at : at + BLOCK]) for at in range(0, got.size, BLOCK)
    )


def _compare_block(here: _Sum, expected: NDArray[Any], got: NDArray[Any]) -> int:
    known, finite = np.isfinite(expected), np.isfinite(got)
    both = known & finite
    # Wider than they come: UINT8 would wrap around, fp16 overflow.
    wide = np.promote_types(got.dtype, np.float32)
    if both.all():
        errors = np.abs(np.subtract(got, expected, dtype=wide))
    else:
        errors = np.abs(np.subtract(got[both], expected[both], dtype=wide))
    here.largest = max(here.largest, float(errors.max(initial=0.0)))
    here.total += float(errors.sum(dtype=np.float64))
    here.values += errors.size
    here.histogram += histogram_of(errors)
    return int(np.count_nonzero(known & ~finite))


def histogram_of(errors: NDArray[np.floating[Any]]) -> Histogram:
    """Of absolute errors (n,)."""
    unequal = errors[errors > 0]
    bins = np.log10(unequal)
    bins -= LOWEST
    bins *= PER_DECADE
    places = np.clip(bins, 0, len(EDGES) - 2, out=bins).astype(np.int64)
    counts = np.bincount(places + 1, minlength=len(EDGES)).astype(np.int64)
    counts[0] = errors.size - unequal.size
    return counts


def _not_finite(values: NDArray[Any]) -> int:
    return int(values.size - np.isfinite(values).sum())
