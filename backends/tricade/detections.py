"""What a detector's output means: one class per kind of output, from the network's tensor to detections."""

from __future__ import annotations

from abc import ABC, abstractmethod
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

    def __getitem__(self, which: NDArray[Any] | slice) -> Detections:
        return Detections(self.boxes[which], self.corners[which], self.scores[which], self.classes[which])


class Finder(ABC):
    """Reads `tensor`, the detector's output for one picture."""

    tensor: str

    @abstractmethod
    def find(self, output: NDArray[Any], placement: Placement, *, threshold: float) -> Detections:
        """Detections with at least `threshold`, mapped back to the picture; none without area there."""


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
        return _with_area(Detections(boxes, corners, scores[kept], classes[kept]))


@dataclass(frozen=True)
class DbnetFinder(Finder, DbnetSettings):
    """MAP (h, w) of a text detector; rotated boxes, class 0."""

    tensor = "MAP"

    def find(self, output: NDArray[Any], placement: Placement, *, threshold: float) -> Detections:
        corners, scores = lines_of(output, self, threshold=threshold)
        corners = to_picture(corners, placement)
        boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
        return _with_area(Detections(boxes, corners, scores, np.zeros(len(scores), np.int32)))


FINDERS: dict[str, type[Finder]] = {"candidates": CandidatesFinder, "dbnet": DbnetFinder}


def _with_area(found: Detections) -> Detections:
    """Drop what lies outside the picture or has no width or height in it."""
    left, top, right, bottom = found.boxes.T
    return found[(right > left) & (bottom > top)]
