"""Fitting a picture into a network's input, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from .settings import Pad, Size

Image = NDArray[np.uint8]  # (height, width, 3): RGB
Points = NDArray[np.float32]  # (..., 2): x, y in pixels


@dataclass(frozen=True)
class Placement:
    """Where a picture lies in a network's input: size there, and its top left corner."""

    picture: Size
    inside: Size
    top: int
    left: int

    @property
    def scale(self) -> tuple[float, float]:
        """Network pixels per picture pixel: x, y."""
        return self.inside[1] / self.picture[1], self.inside[0] / self.picture[0]


def placement_of(picture: Size, size: Size, *, resize: str) -> Placement:
    """How `resize` puts a picture (height, width) into `size`: `stretch` fills it, `letterbox` keeps the
    aspect and centres."""
    if resize == "stretch":
        return Placement(picture, size, 0, 0)
    (height, width), (high, wide) = picture, size
    scale = min(high / height, wide / width)
    inside = max(1, min(high, round(height * scale))), max(1, min(wide, round(width * scale)))
    return Placement(picture, inside, (high - inside[0]) // 2, (wide - inside[1]) // 2)


def size_of(image: Image) -> Size:
    """Height, width."""
    return image.shape[0], image.shape[1]


def place(image: Image, canvas: Image, *, resize: str, pad: Pad) -> Placement:
    """Draw `image` resized (bilinear, as detectors are trained) into `canvas` (h, w, 3), `pad` around it."""
    placement = placement_of(size_of(image), size_of(canvas), resize=resize)
    (high, wide), top, left = placement.inside, placement.top, placement.left
    if (high, wide) == size_of(canvas):
        cv2.resize(image, (wide, high), dst=canvas, interpolation=cv2.INTER_LINEAR)
        return placement
    inner = image
    if (high, wide) != size_of(image):
        inner = cv2.resize(image, (wide, high), interpolation=cv2.INTER_LINEAR)
    below, right = canvas.shape[0] - high - top, canvas.shape[1] - wide - left
    if pad == "edge":
        cv2.copyMakeBorder(inner, top, below, left, right, cv2.BORDER_REPLICATE, dst=canvas)
    else:
        cv2.copyMakeBorder(inner, top, below, left, right, cv2.BORDER_CONSTANT, dst=canvas, value=(pad, pad, pad))
    return placement


def to_picture(points: Points, placement: Placement) -> Points:
    """Network-input pixels (..., 2) back to the picture's pixels, clipped to it."""
    scale_x, scale_y = placement.scale
    height, width = placement.picture
    start, scale, size = np.array([[placement.left, placement.top], [scale_x, scale_y], [width, height]], np.float32)
    return clipped((points - start) / scale, size)


def clipped(points: Points, size: NDArray[np.float32]) -> Points:
    """The same array, its values held to 0 … `size`; `np.clip` takes half as long again for a few."""
    np.maximum(points, 0, out=points)
    return np.minimum(points, size, out=points)
