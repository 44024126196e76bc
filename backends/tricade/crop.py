"""`crop`: what the detector found to boxes in the pictures' pixels, and to every classifier's crops."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from .detections import FINDERS, Detections, Finder, merged
from .dispatch import Departure
from .errors import BadRequest, BadSettings
from .frames import FRAME, Frame, FrameReader
from .letterbox import Image, placement_of
from .settings import Size, groups_of, settings_from_parameters
from .stage import Arrays, Infer, ModelSpec, Stage
from .targets import Target
from .tiles import Tiles


@dataclass(frozen=True)
class CropSettings:
    """`family` says what the detector's output is, `size` and `resize` how pictures lie in its input; `min_size`
    is the least width and height, in the picture's pixels, of what counts."""

    family: str
    size: Size
    resize: str
    threshold: float
    max_detections: int
    min_size: float = 0.0


class Crop(Stage):
    """FRAME and the detector's output to the detections and the classifiers' crops."""

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
        given = FRAME.unpack(inputs[FRAME.tensor])
        frames: list[Frame] = []
        try:
            frames += (self._frames.open(handle, given["PIXELS"]) for handle in given["HANDLES"])
            found = self._find(inputs[self.finder.tensor], given, [frame.pixels.shape for frame in frames])
            outputs, departures = self._cut(frames, found)
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

    def _find(self, outputs: NDArray[Any], given: Arrays, pictures: Sequence[tuple[int, ...]]) -> list[Detections]:
        """The detections of each picture (height, width, …), all of its tiles together, best first."""
        own = given["MIN_SCORE"]
        threshold = float(own[0]) if len(own) else self.settings.threshold
        tiles: Tiles = given["TILES"]
        if len(tiles) != len(outputs) or not pictures:
            raise BadRequest(f"FRAME: expected {len(outputs)} tiles, as the detector answers; got {len(tiles)}")
        parts: list[list[Detections]] = [[] for _ in pictures]
        for (image, left, top, right, bottom), output in zip(tiles.tolist(), outputs, strict=True):
            if not 0 <= image < len(pictures) or not _within(pictures[image], left, top, right, bottom):
                raise BadRequest(
                    f"FRAME: expected tiles within the pictures; got {left, top, right, bottom} of {image}"
                )
            placement = placement_of((bottom - top, right - left), self.settings.size, resize=self.settings.resize)
            found = self.finder.find(output, placement, threshold=threshold)
            parts[image].append(found.large(self.settings.min_size).moved(left, top))
        if not all(parts):
            raise BadRequest("FRAME: expected a tile of each picture")
        return [merged(part, overlap=self.finder.overlap) for part in parts]

    def _cut(self, frames: list[Frame], found: list[Detections]) -> tuple[dict[str, NDArray[Any]], list[Departure]]:
        kept = [detections.best(self.settings.max_detections) for detections in found]
        counts = [len(detections) for detections in kept]
        every = Detections.joined(kept)
        outputs: dict[str, NDArray[Any]] = {
            "COUNT": np.array(counts, np.int32),
            "TRUNCATED": np.array([len(all_) - count for all_, count in zip(found, counts, strict=True)], np.int32),
            "BOXES": every.boxes,
            "CORNERS": every.corners,
            "SCORES": every.scores,
            "CLASS": every.classes,
        }
        departures = []
        for name, target in self.targets.items():
            wanted = [target.wants(detections.classes) for detections in kept]
            crops: list[Image] = []
            for frame, detections, mine in zip(frames, kept, wanted, strict=True):
                crops += target.crops(frame.pixels, detections if len(mine) == len(detections) else detections[mine])
            starts = accumulate(counts, initial=0)
            rows = np.concatenate([mine + np.int32(start) for mine, start in zip(wanted, starts, strict=False)])
            if target.packed:
                outputs |= target.packed_outputs(name, rows, crops)
            else:
                departures.append(target.departure(name, rows, crops))
        return outputs, departures


def _within(picture: tuple[int, ...], left: int, top: int, right: int, bottom: int) -> bool:
    height, width = picture[:2]
    return 0 <= left < right <= width and 0 <= top < bottom <= height
