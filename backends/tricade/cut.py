"""Cutting crops out of pictures and fitting them into a classifier's input."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from .letterbox import Image, clipped

MARGIN = 2  # pixels to each side of a point that bicubic interpolation takes, or fewer


def padded(points: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """Boxes (n, 4) or corners (n, 4, 2) grown by `share` of their own sides in each direction."""
    if share == 0:
        return points
    corners = points.reshape(len(points), math.prod(points.shape[1:]) // 2, 2)
    centre = corners.mean(axis=1, keepdims=True)
    return (centre + (corners - centre) * (1 + 2 * share)).reshape(points.shape)


def crop_boxes(picture: Image, boxes: NDArray[np.float32]) -> list[Image]:
    """The pixels that boxes (n, 4; left, top, right, bottom) touch, as views; at least 1 × 1, all of them inside."""
    height, width = picture.shape[:2]
    starts = clipped(np.floor(boxes[:, :2]), np.array([width - 1, height - 1], np.float32))
    ends = np.maximum(np.ceil(boxes[:, 2:]), starts + 1)
    places = np.concatenate([starts, ends], axis=1).astype(np.int64)
    return [picture[top:bottom, left:right] for left, top, right, bottom in places.tolist()]


def crop_polygon(picture: Image, corners: NDArray[np.float32]) -> Image:
    """The picture within four corners (4, 2; from the top left, clockwise), straightened at its own size. Only what is
    around them is looked at, as OpenCV's warping takes no picture of more than 32766 pixels a side."""
    picture, corners = _around(picture, corners)
    top_left, top_right, bottom_right, bottom_left = corners
    width = max(1, round(max(_length(top_left, top_right), _length(bottom_left, bottom_right))))
    height = max(1, round(max(_length(top_left, bottom_left), _length(top_right, bottom_right))))
    straight = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    transform = cv2.getPerspectiveTransform(corners, straight)
    return cv2.warpPerspective(
        picture, transform, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )


def _around(picture: Image, corners: NDArray[np.float32]) -> tuple[Image, NDArray[np.float32]]:
    """The part of the picture that corners span, with the pixels that bicubic interpolation looks at, and the corners
    in it."""
    height, width = picture.shape[:2]
    left, top = np.clip(np.floor(corners.min(axis=0)) - MARGIN, 0, (width - 1, height - 1)).astype(int).tolist()
    right, bottom = (np.ceil(corners.max(axis=0)) + MARGIN + 1).astype(int).tolist()
    part = picture[top : max(bottom, top + 1), left : max(right, left + 1)]
    return part, corners - np.array([left, top], np.float32)


def are_boxes(corners: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which corners (n, 4, 2) are a box's own, from its top left clockwise, so that no warp is needed: (n,)."""
    x, y = corners[..., 0], corners[..., 1]
    upright = (x[:, 0] == x[:, 3]) & (x[:, 1] == x[:, 2])
    return upright & (y[:, 0] == y[:, 1]) & (y[:, 2] == y[:, 3])


def turned_if_tall(crop: Image, ratio: float | None) -> Image:
    """A crop at least `ratio` times taller than wide, a quarter turn counter-clockwise; others as they are."""
    if ratio is None or crop.shape[0] < ratio * crop.shape[1]:
        return crop
    return np.rot90(crop)


def fitted_width(crop: Image, *, height: int, max_width: int) -> int:
    """The width of a crop resized to `height` with its aspect kept; more than `max_width` is squeezed into it."""
    return max(1, min(max_width, math.ceil(height * crop.shape[1] / crop.shape[0])))


def fit(crop: Image, into: Image) -> None:
    """Resize a crop into an array (h, w, 3); averages pixels where it shrinks to less than half."""
    height, width = into.shape[:2]
    shrinks = crop.shape[0] > 2 * height and crop.shape[1] > 2 * width
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    if into.flags.c_contiguous:
        cv2.resize(crop, (width, height), dst=into, interpolation=how)
    else:
        into[...] = cv2.resize(crop, (width, height), interpolation=how)


def _length(start: NDArray[np.float32], end: NDArray[np.float32]) -> float:
    return float(np.linalg.norm(end - start))
