"""What a caller hands in, to the encoded bytes that travel."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, Union

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .errors import BadInput

# An encoded picture (path or bytes), or pixels: a PIL image, or RGB uint8 (height, width, 3).
ImageLike = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, Image.Image, NDArray[np.uint8]]

# Pixels as BMP cost 4 ms at 1920 x 1080 where PNG costs 160, and 5 ms against 57 to decode: BMP is faster on
# every link above 160 Mbit/s. Beyond this size PNG, as servers take 20 MB per picture unless told otherwise.
BMP_MAX_BYTES = 18_000_000
_BMP_BYTES_PER_PIXEL = {"RGB": 3, "L": 1}
_AS_THEY_ARE = {"1", "L", "LA", "P", "RGB", "RGBA", "I;16"}  # modes that PNG can hold
_FLOATS = {"F", "I"}


@dataclass(frozen=True)
class Encoding:
    """How pixels travel: `lossless` (BMP, PNG where large), `png`, or `jpeg`. Encoded pictures go as they are."""

    name: Literal["lossless", "png", "jpeg"] = "lossless"
    jpeg_quality: int = 90

    def __post_init__(self) -> None:
        if self.name not in ("lossless", "png", "jpeg"):
            raise BadInput(f"encoding: expected lossless, png or jpeg, got {self.name!r}")
        if not 1 <= self.jpeg_quality <= 100:
            raise BadInput(f"jpeg_quality: expected 1 to 100, got {self.jpeg_quality}")


@dataclass(frozen=True)
class Picture:
    """One image of a call: its place in the list (None where there is no list), and a name for messages."""

    source: Path | bytes | Image.Image
    index: int | None = None
    path: str = ""

    @property
    def name(self) -> str:
        """`image 3 (x.jpg)`, as far as there is an index and a path."""
        if self.index is None:
            return self.path or "image"
        return f"image {self.index} ({self.path})" if self.path else f"image {self.index}"

    def kept(self) -> Picture:
        """The same with pixels of its own, for a caller who reuses the buffer before they are sent."""
        return replace(self, source=self.source.copy()) if isinstance(self.source, Image.Image) else self


def picture_from(image: ImageLike, index: int | None = None) -> Picture:
    """Checks what needs no file access; raises `BadInput`."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return Picture(bytes(image), index)
    if isinstance(image, (str, os.PathLike)):
        path = Path(image)
        return Picture(path, index, str(path))
    name = Picture(b"", index).name
    if isinstance(image, Image.Image):
        return Picture(_loaded(image, name), index)
    if isinstance(image, np.ndarray):
        return Picture(_image_from_array(image, name), index)
    raise BadInput(f"{name}: expected a path, bytes, a PIL image or an RGB uint8 array, got {type(image).__name__}")


def encoded(picture: Picture, encoding: Encoding) -> bytes:
    """The bytes that travel: a file's or the given ones untouched, pixels encoded; raises `BadInput`."""
    source = picture.source
    if isinstance(source, Path):
        try:
            source = source.read_bytes()
        except OSError as error:
            raise BadInput(f"{picture.name}: cannot be read: {error.strerror or error}") from error
    if isinstance(source, Image.Image):
        return _encoded_pixels(source, encoding)
    if not source:
        raise BadInput(f"{picture.name}: expected an encoded image, got 0 bytes")
    return source


def _encoded_pixels(image: Image.Image, encoding: Encoding) -> bytes:
    """Pixels as they stand: an EXIF rotation is not written, so boxes are in the caller's own pixels."""
    buffer = BytesIO()
    if encoding.name == "jpeg":
        image.convert("RGB").save(buffer, "JPEG", quality=encoding.jpeg_quality)
    elif encoding.name == "lossless" and _fits_bmp(image):
        image.save(buffer, "BMP")
    else:
        image.save(buffer, "PNG", compress_level=1, exif=b"")
    return buffer.getvalue()


def _fits_bmp(image: Image.Image) -> bool:
    bytes_per_pixel = _BMP_BYTES_PER_PIXEL.get(image.mode)
    if bytes_per_pixel is None or "transparency" in image.info:
        return False
    return image.width * image.height * bytes_per_pixel <= BMP_MAX_BYTES


def _loaded(image: Image.Image, name: str) -> Image.Image:
    """Decoded, in a mode that PNG can hold."""
    if image.mode in _FLOATS:
        raise BadInput(
            f"{name}: expected 8 bits per channel, got PIL mode {image.mode}; scale it to 0..255 and use "
            "image.convert('L') first"
        )
    try:
        image.load()
    except OSError as error:
        raise BadInput(f"{name}: the PIL image cannot be decoded: {error}") from error
    if 0 in image.size:
        raise BadInput(f"{name}: expected pixels, got {image.width} x {image.height}")
    return image if image.mode in _AS_THEY_ARE else image.convert("RGB")


def _image_from_array(array: NDArray[Any], name: str) -> Image.Image:
    """A view of RGB uint8 (height, width, 3)."""
    if array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3 and array.size:
        return Image.fromarray(array)
    raise BadInput(
        f"{name}: expected RGB uint8 [height, width, 3], got {array.dtype} {list(array.shape)}; {_advice(array)}"
    )


def _advice(array: NDArray[Any]) -> str:
    if array.ndim == 4:
        return "hand in list(array) for several images"
    if array.dtype != np.uint8:
        return "scale it to 0..255 and use array.astype(np.uint8)"
    if array.ndim == 3 and array.shape[0] == 3:
        return "put channels last with array.transpose(1, 2, 0)"
    if array.ndim == 2:
        return "make three channels of the grey one with np.stack([array] * 3, axis=-1)"
    return "give three channels, red first"
