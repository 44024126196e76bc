"""`preprocess`: encoded pictures to the detector's tensor; the decoded pictures stay in the frame store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from .decode import Picture, picture_from_bytes
from .errors import BadImage, BadRequest
from .frames import FRAME, HANDLE, FrameWriter, Handle
from .letterbox import place
from .sampling import Sampler, sampling_from_environment
from .settings import Pad, Size, settings_from_parameters
from .stage import Arrays, Infer, ModelSpec, Stage
from .tiles import Tiles, tiles_of


@dataclass(frozen=True)
class PreprocessSettings:
    """`size` is the detector's input; `ring_bytes` 0 sends all pictures inline."""

    size: Size
    resize: str
    pad: Pad
    max_images: int
    max_bytes: int
    max_pixels: int
    ring_bytes: int
    ring_slots: int
    tile: Size | None = None
    overlap: float = 0.2
    max_tiles: int | None = None  # no limit but max_images where pictures are not cut

    def __post_init__(self) -> None:
        if self.resize not in ("letterbox", "stretch"):
            raise ValueError(f"parameter 'resize' should be letterbox or stretch, is {self.resize!r}")


class Preprocess(Stage):
    """IMAGE BYTES [M] and THRESHOLD to TENSOR [T,h,w,3], SIZE [M,2] and what `crop` needs to know, FRAME.

    The whole request is checked here; nothing of it is kept where one of its pictures cannot be decoded. (The
    threshold passes through for another reason too: when an ensemble's optional input feeds only steps whose outputs
    nobody asked for, Triton up to 2.51 counts it as an output of the first step and leaves that out.)
    """

    asks_first = True  # here calls wait in overload; once it has answered, the ensemble starts no step for a lost call

    def __init__(self, settings: PreprocessSettings) -> None:
        self.settings = settings
        sampling = sampling_from_environment(os.environ)
        self._samples = Sampler(sampling) if sampling else None
        self._frames = self._ring()

    @classmethod
    def load(cls, spec: ModelSpec) -> Self:
        return cls(settings_from_parameters(PreprocessSettings, spec.parameters, where=spec.name))

    def process(self, inputs: Arrays, infer: Infer) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        min_score = _min_score(inputs.get("THRESHOLD"))
        images = self._images(inputs["IMAGE"])
        pictures = [self._opened(index, data) for index, data in enumerate(images)]
        tiles = self._tiles(pictures)
        tensor = np.empty((len(tiles), *self.settings.size, 3), np.uint8)
        handles = np.zeros((len(pictures), HANDLE), np.int64)
        inline: list[NDArray[np.uint8]] = []
        used = 0
        try:
            for index, picture in enumerate(pictures):
                handles[index], pixels = self._drawn(index, picture, offset=used)
                if handles[index, 0] == 0:
                    inline.append(pixels.reshape(-1))
                    used += pixels.size
                for row in np.flatnonzero(tiles[:, 0] == index):
                    left, top, right, bottom = tiles[row, 1:]
                    part = pixels[top:bottom, left:right]
                    place(part, tensor[row], resize=self.settings.resize, pad=self.settings.pad)
            pixels = np.concatenate(inline) if inline else np.empty(0, np.uint8)
            frame: Arrays = {"HANDLES": handles, "TILES": tiles, "MIN_SCORE": min_score, "PIXELS": pixels}
            packed = FRAME.pack(frame)
        except BaseException:
            self._forget(handles)
            raise
        if self._samples is not None:
            for data in images:
                self._samples.offer(data)
        return {"TENSOR": tensor, "FRAME": packed, "SIZE": handles[:, 4:6].astype(np.int32)}

    def close(self) -> None:
        if self._frames is not None:
            self._frames.close()

    def _ring(self) -> FrameWriter | None:
        if self.settings.ring_bytes == 0:
            return None
        try:
            return FrameWriter(ring_bytes=self.settings.ring_bytes, slots=self.settings.ring_slots)
        except OSError as error:
            self.warnings = (
                f"no room in /dev/shm for a ring of {self.settings.ring_bytes} bytes ({error}): pictures travel "
                "inline, which is slower; give the container more --shm-size",
            )
            return None

    def _images(self, images: NDArray[np.object_]) -> Sequence[bytes]:
        if images.ndim != 1 or not 1 <= len(images) <= self.settings.max_images:
            raise BadRequest(
                f"IMAGE: expected 1 to {self.settings.max_images} encoded images, got shape {list(images.shape)}; "
                "split the list into several requests"
            )
        return [data if isinstance(data, bytes) else bytes(str(data), "utf-8") for data in images]

    def _tiles(self, pictures: list[Picture]) -> Tiles:
        """The parts of all pictures that the detector sees; raises `BadRequest` where they are too many."""
        settings = self.settings
        parts = [
            tiles_of(index, (picture.height, picture.width), tile=settings.tile, overlap=settings.overlap)
            for index, picture in enumerate(pictures)
        ]
        count = sum(map(len, parts))
        if settings.max_tiles is not None and count > settings.max_tiles:
            raise BadRequest(
                f"IMAGE: expected at most {settings.max_tiles} tiles in a request, got {count} of {len(pictures)} "
                "images; send fewer or smaller images"
            )
        return np.concatenate(parts)

    def _opened(self, index: int, data: bytes) -> Picture:
        limits = self.settings
        try:
            return picture_from_bytes(data, max_bytes=limits.max_bytes, max_pixels=limits.max_pixels)
        except BadImage as error:
            raise error.at(index) from error

    def _drawn(self, index: int, picture: Picture, *, offset: int) -> tuple[Handle, NDArray[np.uint8]]:
        """The picture's handle and pixels: in the ring, or inline at `offset`."""
        height, width = picture.height, picture.width
        placed = self._frames.place(height, width) if self._frames else None
        handle, pixels = placed or (
            np.array([0, 0, 0, offset, height, width], np.int64),
            np.empty((height, width, 3), np.uint8),
        )
        try:
            picture.draw(pixels)
        except BaseException as error:
            self._forget([handle])
            if isinstance(error, BadImage):
                raise error.at(index) from error
            raise
        if placed:
            self._frames.publish(handle)  # type: ignore[union-attr]
        return handle, pixels

    def _forget(self, handles: Iterable[Handle]) -> None:
        """Nobody will be told of them."""
        for handle in handles:
            if handle[0] != 0:
                self._frames.drop(handle)  # type: ignore[union-attr]


def _min_score(threshold: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """The request's threshold [1], or nothing [0] where the pipeline's own holds."""
    if threshold is None:
        return np.empty(0, np.float32)
    if threshold.shape != (1,) or not 0 <= threshold[0] <= 1:
        raise BadRequest(f"THRESHOLD: expected one number from 0 to 1, got {threshold.tolist()}")
    return threshold
