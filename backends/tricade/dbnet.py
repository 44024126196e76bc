"""Text lines out of a differentiable binarization map (Liao et al. 2020, arXiv:1911.08947, section 3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Map = NDArray[np.uint8]  # (h, w): probability × 255
Corners = NDArray[np.float32]  # (n, 4, 2): x, y; from the top left, clockwise

MIN_SIDE = 3  # map pixels; thinner regions are noise
MIN_UNCLIPPED_SIDE = 5


@dataclass(frozen=True)
class DbnetSettings:
    """`binarize` is the probability from which a pixel is text; `unclip` is the paper's r'."""

    binarize: float
    unclip: float
    dilate: bool


def lines_of(probability: Map, settings: DbnetSettings, *, threshold: float) -> tuple[Corners, NDArray[np.float32]]:
    """Rotated boxes (n, 4, 2) in map pixels and scores (n,), best first; a line's score is the mean probability
    within it, at least `threshold`."""
    mask = (probability > settings.binarize * 255).view(np.uint8)
    if settings.dilate:
        mask = cv2.dilate(mask, np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    found = [
        line for line in (_line(contour, probability, settings, threshold) for contour in contours) if line is not None
    ]
    corners = np.array([line[0] for line in found], np.float32).reshape(-1, 4, 2)
    scores = np.array([line[1] for line in found], np.float32)
    order = np.argsort(-scores, kind="stable")
    return corners[order], scores[order]


def _line(
    contour: NDArray[np.int32], probability: Map, settings: DbnetSettings, threshold: float
) -> tuple[NDArray[np.float32], float] | None:
    center, (width, height), angle = cv2.minAreaRect(contour)
    if min(width, height) < MIN_SIDE:
        return None
    score = _mean_inside(probability, cv2.boxPoints((center, (width, height), angle)))
    if score < threshold:
        return None
    # Training shrinks regions by D = A·r/L; a rectangle grows by the same distance on every side.
    grow = 2 * width * height * settings.unclip / (2 * (width + height))
    if min(width, height) + grow < MIN_UNCLIPPED_SIDE:
        return None
    return _clockwise(cv2.boxPoints((center, (width + grow, height + grow), angle))), score


def _mean_inside(probability: Map, corners: NDArray[np.float32]) -> float:
    """Mean probability (0..1) within a polygon (4, 2) in map pixels."""
    height, width = probability.shape
    left, top = (max(0, math.floor(v)) for v in corners.min(axis=0))
    right, bottom = corners.max(axis=0)
    window = probability[top : min(height, math.ceil(bottom) + 1), left : min(width, math.ceil(right) + 1)]
    inside = np.zeros(window.shape, np.uint8)
    cv2.fillPoly(inside, [(corners - [left, top]).astype(np.int32)], 1)
    return float(cv2.mean(window, inside)[0]) / 255


def _clockwise(corners: NDArray[np.float32]) -> NDArray[np.float32]:
    """Order four corners of a rectangle: top left, top right, bottom right, bottom left."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = by_x[:2], by_x[2:]
    left, right = left[np.argsort(left[:, 1], kind="stable")], right[np.argsort(right[:, 1], kind="stable")]
    return np.stack([left[0], right[0], right[1], left[1]]).astype(np.float32)
