"""Average precision as COCO has it (Lin et al. 2014, arXiv:1405.0312; pycocotools' `accumulate`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

POINTS = np.arange(101)  # hundredths of recall


def average_precision(scores: NDArray[np.float32], hits: NDArray[np.bool_], *, expected: int) -> float:
    """Of one class's n detections in all pictures, of which `hits` are among the `expected`: the mean over 101
    points of recall of the best precision from there on; 0 where nothing was expected."""
    if not expected:
        return 0.0
    found = np.cumsum(hits[np.argsort(-scores, kind="stable")])
    precision = found / np.arange(1, len(found) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    # In whole numbers, so that 57 of 100 is a recall of 0.57.
    reached = np.searchsorted(100 * found, POINTS * expected)
    return float(np.append(best, 0.0)[reached].mean())
