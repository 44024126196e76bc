"""`crop`: what the detector found to boxes in the pictures' pixels, and to every classifier's crops."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from .chunks import Chunk, chunks_of
from .cut import crop_box, crop_polygon, fit, fitted_width, is_box, turned_if_tall
from .detections import FINDERS, Detections, Finder
from .dispatch import Departure, departure_of
from .errors import BadSettings
from .frames import Frame, FrameReader
from .letterbox import Image, placement_of, size_of
from .settings import Size, groups_of, settings_from_parameters
from .stage import Arrays, Infer, ModelSpec, Stage


@dataclass(frozen=True)
class CropSettings:
    """`family` says what the detector's output is, `size` and `resize` how pictures lie in its input."""

    family: str
    size: Size
    resize: str
    threshold: float
    max_detections: int


@dataclass(frozen=True)
class Target:
    """A classifier's input: what crops it gets and how they are fitted."""

    model: str
    size: Size
    resize: str
    pad: int
    max_batch: int
    classes: tuple[int, ...] | None = None  # all where absent
    widths: tuple[int, ...] | None = None
    rotate_tall: float | None = None
    packed: bool = False

    def __post_init__(self) -> None:
        if self.resize not in ("stretch", "pad"):
            raise ValueError(f"parameter 'resize' should be stretch or pad, is {self.resize!r}")

    @property
    def steps(self) -> tuple[int, ...]:
        """The widths a batch may have, ascending."""
        return self.widths or (self.size[1],)

    def wants(self, classes: NDArray[np.int32]) -> NDArray[np.int32]:
        """The rows of detections this classifier gets."""
        wanted = np.ones(len(classes), bool) if self.classes is None else np.isin(classes, self.classes)
        return np.flatnonzero(wanted).astype(np.int32)

    def prepared(self, crop: Image) -> Image:
        return turned_if_tall(crop, self.rotate_tall)

    def width_of(self, crop: Image) -> int:
        """The width a prepared crop takes in the input."""
        if self.resize == "stretch":
            return self.size[1]
        return fitted_width(crop, height=self.size[0], max_width=self.steps[-1])


class Crop(Stage):
    """FRAME, PIXELS, MIN_SCORE and the detector's output to the detections and the classifiers' crops."""

    def __init__(self, settings: CropSettings, finder: Finder, targets: Mapping[str, Target]) -> None:
        self.settings, self.finder, self.targets = settings, finder, targets
        self._frames = FrameReader()

    @classmethod
    def load(cls, spec: ModelSpec) -> Self:
        plain, groups = groups_of(spec.parameters)
        common = {field.name for field in dataclasses.fields(CropSettings)}
        mine = {name: value for name, value in plain.items() if name in common}
        settings = settings_from_parameters(CropSettings, mine, where=spec.name)
        if settings.family not in FINDERS:
            raise BadSettings(
                f"{spec.name}: parameter 'family' should be one of {list(FINDERS)}, is {settings.family!r}"
            )
        others = {name: value for name, value in plain.items() if name not in common}
        finder = settings_from_parameters(FINDERS[settings.family], others, where=spec.name)
        targets = {
            name: settings_from_parameters(Target, group, where=f"{spec.name}: {name}")
            for name, group in groups.items()
        }
        return cls(settings, finder, targets)

    def process(self, inputs: Arrays, infer: Infer) -> dict[str, NDArray[Any]]:
        handles = inputs["FRAME"]
        frames = [self._frames.open(handle, inputs["PIXELS"]) for handle in handles]
        try:
            outputs, departures = self._cut(frames, inputs[self.finder.tensor], self._threshold(inputs))
            for frame in frames:
                frame.check()
        finally:
            for frame in frames:
                frame.release()
        answers = infer([call for departure in departures for call in departure.calls])
        for departure in departures:
            mine, answers = answers[: len(departure.calls)], answers[len(departure.calls) :]
            outputs |= departure.outputs(mine)
        return outputs

    def close(self) -> None:
        self._frames.close()

    def _threshold(self, inputs: Arrays) -> float:
        """The request's own, where MIN_SCORE holds one."""
        return float(inputs["MIN_SCORE"][0]) if len(inputs["MIN_SCORE"]) else self.settings.threshold

    def _cut(
        self, frames: list[Frame], found: NDArray[Any], threshold: float
    ) -> tuple[dict[str, NDArray[Any]], list[Departure]]:
        everything = [self._find(frame, output, threshold) for frame, output in zip(frames, found, strict=True)]
        kept = [detections[: self.settings.max_detections] for detections in everything]
        count = np.array([len(detections) for detections in kept], np.int32)
        classes = np.concatenate([detections.classes for detections in kept])
        outputs: dict[str, NDArray[Any]] = {
            "COUNT": count,
            "TRUNCATED": np.array([len(detections) for detections in everything], np.int32) - count,
            "BOXES": np.concatenate([detections.boxes for detections in kept]),
            "CORNERS": np.concatenate([detections.corners for detections in kept]),
            "SCORES": np.concatenate([detections.scores for detections in kept]),
            "CLASS": classes,
        }
        crops = [
            crop_box(frame.pixels, box) if is_box(corners) else crop_polygon(frame.pixels, corners)
            for frame, detections in zip(frames, kept, strict=True)
            for box, corners in zip(detections.boxes, detections.corners, strict=True)
        ]
        departures = []
        for name, target in self.targets.items():
            rows = target.wants(classes)
            mine = [target.prepared(crops[row]) for row in rows]
            if target.packed:
                outputs |= _packed(name, target, rows, mine)
            else:
                departures.append(_departure(name, target, rows, mine))
        return outputs, departures

    def _find(self, frame: Frame, output: NDArray[Any], threshold: float) -> Detections:
        placement = placement_of(size_of(frame.pixels), self.settings.size, resize=self.settings.resize)
        return self.finder.find(output, placement, threshold=threshold)


def _departure(name: str, target: Target, rows: NDArray[np.int32], crops: list[Image]) -> Departure:
    """Crops drawn straight into their chunks."""
    height = target.size[0]
    widths = np.array([target.width_of(crop) for crop in crops], np.int32)

    def draw(chunk: Chunk) -> NDArray[np.uint8]:
        batch = np.empty((len(chunk.positions), height, chunk.width, 3), np.uint8)
        for canvas, position in zip(batch, chunk.positions, strict=True):
            canvas[:, widths[position] :] = target.pad
            fit(crops[position], canvas[:, : widths[position]])
        return batch

    chunks = chunks_of(widths, target.steps, max_batch=target.max_batch)
    blank = np.full((1, height, target.steps[0], 3), target.pad, np.uint8)
    return departure_of(name, target.model, rows=rows, chunks=chunks, draw=draw, blank=blank)


def _packed(name: str, target: Target, rows: NDArray[np.int32], crops: list[Image]) -> dict[str, NDArray[Any]]:
    """Crops at their own widths, one after the other, for `turn`."""
    height = target.size[0]
    widths = np.array([target.width_of(crop) for crop in crops], np.int32)
    ends = np.cumsum(widths.astype(np.int64) * height * 3)
    packed = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for crop, width, end in zip(crops, widths, ends, strict=True):
        fit(crop, packed[end - width * height * 3 : end].reshape(height, width, 3))
    prefix = name.upper()
    return {f"{prefix}_PACKED": packed, f"{prefix}_WIDTHS": widths, f"{prefix}_PACKED_ROWS": rows}
