"""The stages' own arithmetic on one core, beside plainer ways of doing it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tricade.cut import crop_boxes, fit
from tricade.nms import suppress

IOU = 0.5
SIDE = 224
TURNS = 7


def medians_ms() -> dict[str, dict[str, float]]:
    """By piece of work, then by way of doing it; ways take turns."""
    cv2.setNumThreads(1)
    boxes, scores, classes = _candidates(300)
    picture, found = _picture(100)
    work: dict[str, dict[str, Callable[[], object]]] = {
        "NMS of 300 candidates": {
            "tricade": partial(suppress, boxes, scores, classes, iou_threshold=IOU),
            "numpy, a row at a time": partial(_numpy_nms, boxes, scores, classes),
            "Python, a pair at a time": partial(_pairwise_nms, boxes, scores, classes),
        },
        "100 crops of 224 × 224 out of 1920 × 1080": {
            "tricade": partial(_crops, picture, found),
            "numpy, bilinear": partial(_numpy_crops, picture, found),
            "Pillow, a box at a time": partial(_pillow_crops, picture, found),
        },
    }
    return {name: _medians_ms(ways) for name, ways in work.items()}


def _medians_ms(ways: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The first turn warms up."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(1 + TURNS):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            took[name].append(1e3 * (time.perf_counter() - begin))
    return {name: float(np.median(found[1:])) for name, found in took.items()}


def _candidates(count: int) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """30 things seen ten times each, of three classes, best score first."""
    random = np.random.default_rng(0)
    things = random.uniform(0, 560, (count // 10, 2)).repeat(10, axis=0) + random.normal(0, 4, (count, 2))
    boxes = np.concatenate([things, things + random.uniform(60, 80, (count, 2))], axis=1).astype(np.float32)
    classes = np.arange(count // 10).repeat(10).astype(np.int32) % 3
    return boxes, np.sort(random.uniform(0.3, 0.9, count))[::-1].astype(np.float32), classes


def _picture(count: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Noise, and boxes of 60 to 300 pixels in it."""
    random = np.random.default_rng(0)
    picture = random.integers(0, 255, (1080, 1920, 3), dtype=np.uint8)
    corners = random.uniform((0, 0), (1600, 760), (count, 2))
    return picture, np.concatenate([corners, corners + random.uniform(60, 300, (count, 2))], axis=1).astype(np.float32)


def _numpy_nms(
    boxes: NDArray[np.float32], scores: NDArray[np.float32], classes: NDArray[np.int32]
) -> NDArray[np.int64]:
    moved = boxes + classes[:, None] * 10_000
    area = (moved[:, 2] - moved[:, 0]) * (moved[:, 3] - moved[:, 1])
    kept, waiting = [], np.argsort(-scores, kind="stable")
    while len(waiting):
        best, waiting = waiting[0], waiting[1:]
        kept.append(best)
        overlap = np.minimum(moved[best, 2:], moved[waiting, 2:]) - np.maximum(moved[best, :2], moved[waiting, :2])
        both = overlap.clip(0).prod(axis=1)
        waiting = waiting[both / (area[best] + area[waiting] - both) <= IOU]
    return np.array(kept)


def _pairwise_nms(boxes: NDArray[np.float32], scores: NDArray[np.float32], classes: NDArray[np.int32]) -> list[int]:
    kept: list[int] = []
    rows = boxes.tolist()
    for one in np.argsort(-scores, kind="stable").tolist():
        if all(classes[one] != classes[other] or _iou(rows[one], rows[other]) <= IOU for other in kept):
            kept.append(one)
    return kept


def _iou(one: list[float], other: list[float]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    both = max(0.0, width) * max(0.0, height)
    return both / ((one[2] - one[0]) * (one[3] - one[1]) + (other[2] - other[0]) * (other[3] - other[1]) - both)


def _crops(picture: NDArray[np.uint8], boxes: NDArray[np.float32]) -> NDArray[np.uint8]:
    batch = np.empty((len(boxes), SIDE, SIDE, 3), np.uint8)
    for canvas, crop in zip(batch, crop_boxes(picture, boxes), strict=True):
        fit(crop, canvas)
    return batch


def _numpy_crops(picture: NDArray[np.uint8], boxes: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.stack([_bilinear(crop) for crop in crop_boxes(picture, boxes)])


def _bilinear(crop: NDArray[np.uint8]) -> NDArray[np.uint8]:
    (top, below, down), (left, right, across) = (_between(side) for side in crop.shape[:2])
    upper = crop[top][:, left] * (1 - across[:, None]) + crop[top][:, right] * across[:, None]
    lower = crop[below][:, left] * (1 - across[:, None]) + crop[below][:, right] * across[:, None]
    return (upper * (1 - down[:, None, None]) + lower * down[:, None, None] + 0.5).astype(np.uint8)


def _between(side: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    at = ((np.arange(SIDE) + 0.5) * side / SIDE - 0.5).clip(0, side - 1)
    low = at.astype(np.intp)
    return low, np.minimum(low + 1, side - 1), (at - low).astype(np.float32)


def _pillow_crops(picture: NDArray[np.uint8], boxes: NDArray[np.float32]) -> NDArray[np.uint8]:
    image = Image.fromarray(picture)
    size = (SIDE, SIDE)
    return np.stack([np.asarray(image.resize(size, Image.Resampling.BILINEAR, tuple(box))) for box in boxes.tolist()])
