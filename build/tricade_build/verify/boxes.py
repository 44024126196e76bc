"""Which of the candidate's detections are fp32's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float32]  # (n, 4): left, top, right, bottom

IOU = 0.5
SHOWN = 3  # detections of a picture that are named


@dataclass(frozen=True)
class Found:
    """n detections of one picture, in any order."""

    boxes: Boxes
    scores: NDArray[np.float32]  # (n,)
    classes: NDArray[np.int32]  # (n,)

    def __len__(self) -> int:
        return len(self.scores)

    def text(self, which: NDArray[np.bool_], names: Sequence[str]) -> str:
        """The best of those chosen: class, score and box."""
        rows = sorted(np.flatnonzero(which), key=lambda row: -self.scores[row])
        shown = [
            f"{name_of(names, int(self.classes[row]))} {self.scores[row]:.2f} "
            f"at {', '.join(f'{side:.0f}' for side in self.boxes[row])}"
            for row in rows[:SHOWN]
        ]
        more = [f"{len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
        return "; ".join(shown + more) or "none"


def matches(reference: Found, candidate: Found, *, counts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each of the candidate's detections (n,) the index of fp32's that it is, -1 for none.

    As pycocotools' `evaluateImg`: best score first, each takes of its class the free one with the highest IoU, at
    least 0.5; those that do not count (m,) only where none that counts is left.
    """
    chosen = np.full(len(candidate), -1, np.int64)
    if not len(reference):
        return chosen
    overlap = overlaps(candidate.boxes, reference.boxes)
    fits = (overlap >= IOU) & (candidate.classes[:, None] == reference.classes[None])
    overlap = np.where(fits, overlap + 2 * counts, 0.0)
    for row in np.argsort(-candidate.scores, kind="stable"):
        best = int(overlap[row].argmax())
        if overlap[row, best] > 0:
            chosen[row] = best
            overlap[:, best] = 0.0
    return chosen


def overlaps(these: Boxes, those: Boxes) -> NDArray[np.float64]:
    """IoU of each with each, (n, m); 0 where there is no area."""
    one, other = these[:, None].astype(np.float64), those[None].astype(np.float64)
    sides = np.minimum(one[..., 2:], other[..., 2:]) - np.maximum(one[..., :2], other[..., :2])
    both = sides.clip(min=0).prod(axis=-1)
    union = _areas(one) + _areas(other) - both
    return np.divide(both, union, out=np.zeros_like(both), where=union > 0)


def name_of(names: Sequence[str], index: int) -> str:
    return names[index] if 0 <= index < len(names) else f"class {index}"


def _areas(boxes: NDArray[Any]) -> NDArray[Any]:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
