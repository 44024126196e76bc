"""Cutting crops out of pictures and fitting them into a classifier's input."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from .letterbox import Image


def padded(points: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """A box (4,) or corners (4, 2) grown by `share` of its own sides in each direction."""
    if share == 0:
        return points
    corners = points.reshape(-1, 2)
    centre = corners.mean(axis=0)
    return (centre + (corners - centre) * (1 + 2 * share)).reshape(points.shape)


def crop_box(picture: Image, box: NDArray[np.float32]) -> Image:
    """The pixels a box (left, top, right, bottom) touches, as a view; at least 1 × 1, all of them inside."""
    height, width = picture.shape[:2]
    left, top = (max(0, min(math.floor(start), side - 1)) for start, side in zip(box[:2], (width, height), strict=True))
    right, bottom = max(math.ceil(box[2]), left + 1), max(math.ceil(box[3]), top + 1)
    return picture[top:bottom, left:right]


def crop_polygon(picture: Image, corners: NDArray[np.float32]) -> Image:
    """The picture within four corners (4, 2; from the top left, clockwise), straightened at its own size."""
    top_left, top_right, bottom_right, bottom_left = corners
    width = max(1, round(max(_length(top_left, top_right), _length(bottom_left, bottom_right))))
    height = max(1, round(max(_length(top_left, bottom_left), _length(top_right, bottom_right))))
    straight = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    transform = cv2.getPerspectiveTransform(corners, straight)
    return cv2.warpPerspective(
        picture, transform, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )


def is_box(corners: NDArray[np.float32]) -> bool:
    """Whether four corners are the box's own, so that no warp is needed."""
    (left, top), (right, _), (_, bottom), _ = corners.tolist()
    return bool(corners.tolist() == [[left, top], [right, top], [right, bottom], [left, bottom]])


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
