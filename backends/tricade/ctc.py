"""Text out of a CTC head's best path (Graves et al. 2006, section 3.2): drop repeats, then blanks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BLANK = 0


def text_of(index: NDArray[np.int32], score: NDArray[np.float32], alphabet: Sequence[str]) -> tuple[str, float]:
    """The text of one line's steps (t,) and the mean score of its characters, 0 for no text; `alphabet[0]` is
    the blank."""
    begins = np.ones(len(index), bool)
    begins[1:] = index[1:] != index[:-1]
    kept = begins & (index != BLANK)
    if not kept.any():
        return "", 0.0
    return "".join(alphabet[step] for step in index[kept]), float(score[kept].mean())
