"""Non-maximum suppression: of boxes of one class that overlap, the best stays."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float32]  # (n, 4): left, top, right, bottom
Indices = NDArray[np.int64]


def suppress(boxes: Boxes, scores: NDArray[np.float32], classes: NDArray[np.int32], *, iou_threshold: float) -> Indices:
    """Indices of the boxes that stay, best score first; greedy, per class, over `iou_threshold` goes."""
    if len(boxes) == 0:
        return np.empty(0, np.int64)
    corner_and_size = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1).astype(np.float64)
    kept = cv2.dnn.NMSBoxesBatched(
        corner_and_size,
        scores,  # type: ignore[arg-type]
        classes,  # type: ignore[arg-type]
        score_threshold=-1.0,
        nms_threshold=iou_threshold,
    )
    return np.asarray(kept, np.int64).reshape(-1)
