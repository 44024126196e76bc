"""What a detector's output means: one class per kind of output, from the network's tensor to detections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dbnet import DbnetSettings, lines_of
from .letterbox import Placement, to_picture
from .nms import Boxes, suppress


@dataclass(frozen=True)
class Detections:
    """n detections of one picture, best score first, in the picture's pixels."""

    boxes: Boxes  # (n, 4): left, top, right, bottom
    corners: NDArray[np.float32]  # (n, 4, 2): x, y; from the top left, clockwise
    scores: NDArray[np.float32]  # (n,)
    classes: NDArray[np.int32]  # (n,)

    def __len__(self) -> int:
        return len(self.scores)

    def large(self, min_size: float) -> Detections:
        """Those at least `min_size` pixels wide and high, and never those without any area."""
        sides = self.boxes[:, 2:] - self.boxes[:, :2]
        smaller = np.minimum(sides[:, 0], sides[:, 1])
        kept = (smaller > 0) & (smaller >= min_size)
        return self if kept.all() else self[kept]

    def moved(self, left: int, top: int) -> Detections:
        """The same with the picture's origin elsewhere."""
        if left == top == 0:
            return self
        shift = np.array([left, top], np.float32)
        return Detections(self.boxes + np.tile(shift, 2), self.corners + shift, self.scores, self.classes)

    def best(self, count: int) -> Detections:
        """The first so many."""
        return self if len(self) <= count else self[:count]

    def __getitem__(self, which: NDArray[Any] | slice) -> Detections:
        return Detections(self.boxes[which], self.corners[which], self.scores[which], self.classes[which])

    @classmethod
    def joined(cls, parts: Sequence[Detections]) -> Detections:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.boxes for part in parts]),
            np.concatenate([part.corners for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.classes for part in parts]),
        )


class Finder(ABC):
    """Reads `tensor`, the detector's output for one tile; above `overlap`, two tiles have found the same thing."""

    tensor: str
    overlap: float

    @abstractmethod
    def find(self, output: NDArray[Any], placement: Placement, *, threshold: float) -> Detections:
        """Detections with at least `threshold`, in the tile's pixels and clipped to it."""


@dataclass(frozen=True)
class CandidatesFinder(Finder):
    """CANDIDATES (K, 6): left, top, right, bottom, score, class; `iou` is the overlap from which NMS suppresses."""

    iou: float
    tensor = "CANDIDATES"

    def find(self, output: NDArray[Any], placement: Placement, *, threshold: float) -> Detections:
        likely = output[output[:, 4] >= threshold]
        scores, classes = likely[:, 4], likely[:, 5].astype(np.int32)
        kept = suppress(likely[:, :4], scores, classes, iou_threshold=self.iou)
        boxes = to_picture(likely[kept, :4].reshape(-1, 2, 2), placement).reshape(-1, 4)
        corners = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
        return Detections(boxes, corners, scores[kept], classes[kept])

    @property
    def overlap(self) -> float:  # type: ignore[override]
        """Also where the network suppresses on its own (`iou` 1), it has seen one tile at a time."""
        return min(self.iou, 0.5)


@dataclass(frozen=True)
class DbnetFinder(Finder, DbnetSettings):
    """MAP (h, w) of a text detector; rotated boxes, class 0."""

    tensor = "MAP"
    overlap = 0.5

    def find(self, output: NDArray[Any], placement: Placement, *, threshold: float) -> Detections:
        corners, scores = lines_of(output, self, threshold=threshold)
        corners = to_picture(corners, placement)
        boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
        return Detections(boxes, corners, scores, np.zeros(len(scores), np.int32))


FINDERS: dict[str, type[Finder]] = {"candidates": CandidatesFinder, "dbnet": DbnetFinder}


def merged(parts: Sequence[Detections], *, overlap: float) -> Detections:
    """The detections of all tiles of a picture, best first.

    Of two of one class from different tiles that share more than `overlap` of the smaller one's area, the better
    stays: a thing cut by a tile's border is a part of what another tile sees whole, which IoU would not notice.
    """
    if len(parts) == 1:
        return parts[0]
    every = Detections.joined(parts)
    tile = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    kept: list[int] = []
    waiting = np.argsort(-every.scores, kind="stable")
    while len(waiting):
        best, waiting = waiting[0], waiting[1:]
        kept.append(int(best))
        same = (every.classes[waiting] == every.classes[best]) & (tile[waiting] != tile[best])
        waiting = waiting[~(same & (_shared(every.boxes[best], every.boxes[waiting]) > overlap))]
    return every[np.array(kept, np.int64)]


def _shared(box: NDArray[np.float32], others: Boxes) -> NDArray[np.float32]:
    """How much of the smaller one's area a box (4,) shares with each of the others (n, 4)."""
    width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    smaller = np.minimum(areas, (box[2] - box[0]) * (box[3] - box[1]))
    return np.clip(width, 0, None) * np.clip(height, 0, None) / smaller
