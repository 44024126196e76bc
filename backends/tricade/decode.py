"""Encoded pictures to RGB pixels, with limits that hold before anything is decoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from .errors import BadImage

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF")
_EXPECTED = "expected JPEG, PNG, WebP, BMP or TIFF"
_ORIENTATION = 0x0112  # EXIF 2.3, 4.6.4: 1 is upright

Image.MAX_IMAGE_PIXELS = None  # `max_pixels` is the limit here, and a refusal instead of a warning


class Picture(ABC):
    """An upright RGB picture of a known size."""

    height: int
    width: int

    @abstractmethod
    def draw(self, into: NDArray[np.uint8]) -> None:
        """Its pixels into a contiguous array (height, width, 3); raises `BadImage` where they cannot be decoded."""

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """Its pixels (height, width, 3) in memory of their own; raises `BadImage` as `draw`."""
        pixels = np.empty((self.height, self.width, 3), np.uint8)
        self.draw(pixels)
        return pixels


def picture_from_bytes(data: bytes, *, max_bytes: int, max_pixels: int) -> Picture:
    """A picture within the limits; raises `BadImage` for what is too large or not a picture. A plain JPEG is decoded
    when it is drawn, by libjpeg-turbo straight to where it is wanted: as Pillow's pixels, in less than half its time.
    """
    if not data:
        raise BadImage(f"{_EXPECTED}, got 0 bytes")
    if len(data) > max_bytes:
        raise BadImage(f"expected at most {max_bytes} bytes, got {len(data)}; send a smaller file")
    if plain := _plain_jpeg(data):
        _check_size((plain.width, plain.height), max_pixels)
        return plain
    with _refusals(data), Image.open(BytesIO(data), formats=FORMATS) as image:
        _check_size(image.size, max_pixels)
        # `getexif` reads XMP too.
        if image.format == "JPEG" and image.mode == "RGB" and image.getexif().get(_ORIENTATION, 1) == 1:
            return _Jpeg(data, image.height, image.width)
        return _decoded(image)


@dataclass(frozen=True)
class _Jpeg(Picture):
    """Three channels, upright as it is."""

    data: bytes
    height: int
    width: int

    def draw(self, into: NDArray[np.uint8]) -> None:
        try:
            simplejpeg.decode_jpeg(self.data, "RGB", buffer=into)
        except ValueError:  # also where a decoder could go on: then Pillow decides
            with _refusals(self.data), Image.open(BytesIO(self.data), formats=FORMATS) as image:
                picture = _decoded(image)
            if (picture.height, picture.width) != (self.height, self.width):
                raise BadImage("cannot be decoded: its headers contradict each other") from None
            picture.draw(into)


@dataclass(frozen=True)
class _Decoded(Picture):
    """Whatever Pillow made."""

    image: Image.Image

    @property
    def height(self) -> int:  # type: ignore[override]
        return self.image.height

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.image.width

    def draw(self, into: NDArray[np.uint8]) -> None:
        into[...] = np.asarray(self.image)


def _plain_jpeg(data: bytes) -> _Jpeg | None:
    """One of three channels that says nothing of its orientation, neither in EXIF nor in XMP: known without Pillow's
    50 µs."""
    if not data.startswith(b"\xff\xd8") or b"Exif" in data or b"tiff:Orientation" in data:
        return None
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
    except ValueError:
        return None
    return _Jpeg(data, height, width) if colours == "YCbCr" else None


def _decoded(image: Image.Image) -> Picture:
    image.load()
    ImageOps.exif_transpose(image, in_place=True)  # the other form copies upright pictures too
    return _Decoded(_rgb(image))


@contextmanager
def _refusals(data: bytes) -> Iterator[None]:
    """Whatever Pillow raises, as `BadImage`."""
    try:
        yield
    except (BadImage, MemoryError):
        raise
    except UnidentifiedImageError as error:
        raise BadImage(f"{_EXPECTED}, got {len(data)} bytes beginning with {data[:12]!r}") from error
    except Exception as error:  # its decoders raise nearly anything on damaged files
        raise BadImage(f"cannot be decoded: {error or type(error).__name__}") from error


def _check_size(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if width * height > max_pixels:
        raise BadImage(f"expected at most {max_pixels} pixels, got {width} x {height}; send a smaller picture")


def _rgb(image: Image.Image) -> Image.Image:
    """Any mode to RGB: transparent ground becomes white, as viewers show it; 16 bits keep the upper 8."""
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith("I"):
        return _from_16_bits(image)
    if image.mode == "F":
        raise BadImage("expected 8 or 16 bits per channel, got 32-bit floating point; convert it first")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        ground = Image.new("RGBA", layer.size, "white")
        return Image.alpha_composite(ground, layer).convert("RGB")
    return image.convert("RGB")


def _from_16_bits(image: Image.Image) -> Image.Image:
    grey = (np.clip(np.asarray(image), 0, 65535) >> 8).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
