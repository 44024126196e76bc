"""A classifier as `crop` sees it: which detections it gets, and how their crops are fitted into its input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chunks import Chunk, chunks_of
from .cut import are_boxes, crop_boxes, crop_polygon, fit, fitted_width, padded, turned_if_tall
from .detections import Detections
from .dispatch import ANSWERS, Departure, departure_of
from .letterbox import Image, place
from .settings import Names, Size


@dataclass(frozen=True)
class Target:
    """A classifier's input; `padding` is what a crop takes of its surroundings, in parts of the box's sides."""

    model: str
    size: Size
    resize: str
    pad: int
    max_batch: int
    classes: tuple[int, ...] | None = None  # all where absent
    widths: tuple[int, ...] | None = None
    rotate_tall: float | None = None
    padding: float = 0.0
    packed: bool = False
    answers: Names = ANSWERS

    def __post_init__(self) -> None:
        if self.resize not in ("stretch", "pad", "letterbox"):
            raise ValueError(f"parameter 'resize' should be stretch, pad or letterbox, is {self.resize!r}")

    @property
    def steps(self) -> tuple[int, ...]:
        """The widths a batch may have, ascending."""
        return self.widths or (self.size[1],)

    def wants(self, classes: NDArray[np.int32]) -> NDArray[np.int32]:
        """The rows of detections this classifier gets."""
        if self.classes is None:
            return np.arange(len(classes), dtype=np.int32)
        return np.flatnonzero(np.isin(classes, self.classes)).astype(np.int32)

    def crops(self, picture: Image, detections: Detections) -> list[Image]:
        """The part of the picture that each detection's crop shows, at its own size."""
        crops = crop_boxes(picture, padded(detections.boxes, self.padding))
        tilted = np.flatnonzero(~are_boxes(detections.corners))
        for row, corners in zip(tilted, padded(detections.corners[tilted], self.padding), strict=True):
            crops[row] = crop_polygon(picture, corners)
        return [turned_if_tall(crop, self.rotate_tall) for crop in crops] if self.rotate_tall else crops

    def widths_of(self, crops: Sequence[Image]) -> NDArray[np.int32]:
        """The widths that crops take in the input."""
        if self.resize != "pad":
            return np.full(len(crops), self.size[1], np.int32)
        height, max_width = self.size[0], self.steps[-1]
        return np.array([fitted_width(crop, height=height, max_width=max_width) for crop in crops], np.int32)

    def draw(self, crop: Image, into: Image) -> None:
        """Fit a crop into an array (h, its width, 3)."""
        if self.resize == "letterbox":
            place(crop, into, resize="letterbox", pad=self.pad)
        else:
            fit(crop, into)

    def departure(self, name: str, rows: NDArray[np.int32], crops: list[Image]) -> Departure:
        """Crops drawn straight into the batches they leave in."""
        widths = self.widths_of(crops)
        wide = widths.tolist()

        def draw(chunk: Chunk) -> NDArray[np.uint8]:
            batch = np.empty((len(chunk.positions), self.size[0], chunk.width, 3), np.uint8)
            for canvas, position in zip(batch, chunk.positions.tolist(), strict=True):
                if wide[position] < chunk.width:
                    canvas[:, wide[position] :] = self.pad
                    self.draw(crops[position], canvas[:, : wide[position]])
                else:
                    self.draw(crops[position], canvas)
            return batch

        return departure_of(
            name,
            self.model,
            rows=rows,
            chunks=chunks_of(widths, self.steps, max_batch=self.max_batch),
            draw=draw,
            blank=self._blank,
            answers=self.answers,
        )

    @cached_property
    def _blank(self) -> NDArray[np.uint8]:
        """What goes to the network where there is no crop."""
        return np.full((1, self.size[0], self.steps[0], 3), self.pad, np.uint8)

    def packed_outputs(self, name: str, rows: NDArray[np.int32], crops: list[Image]) -> dict[str, NDArray[Any]]:
        """Crops at their own widths, one after the other, for `turn`."""
        widths = self.widths_of(crops)
        ends = np.cumsum(widths.astype(np.int64) * self.size[0] * 3)
        flat = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        for crop, width, end in zip(crops, widths, ends, strict=True):
            self.draw(crop, flat[end - width * self.size[0] * 3 : end].reshape(self.size[0], width, 3))
        prefix = name.upper()
        return {f"{prefix}_PACKED": flat, f"{prefix}_WIDTHS": widths, f"{prefix}_PACKED_ROWS": rows}
