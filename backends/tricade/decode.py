"""Encoded pictures to RGB pixels, with limits that hold before anything is decoded."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from .errors import BadImage

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF")
_EXPECTED = "expected JPEG, PNG, WebP, BMP or TIFF"

Image.MAX_IMAGE_PIXELS = None  # `max_pixels` is the limit here, and a refusal instead of a warning


def picture_from_bytes(data: bytes, *, max_bytes: int, max_pixels: int) -> Image.Image:
    """Decode to an upright RGB picture; raises `BadImage` for what is too large or not a picture."""
    if not data:
        raise BadImage(f"{_EXPECTED}, got 0 bytes")
    if len(data) > max_bytes:
        raise BadImage(f"expected at most {max_bytes} bytes, got {len(data)}; send a smaller file")
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            _check_size(image.size, max_pixels)
            image.load()
            ImageOps.exif_transpose(image, in_place=True)  # the other form copies upright pictures too
            return _rgb(image)
    except BadImage:
        raise
    except UnidentifiedImageError as error:
        raise BadImage(f"{_EXPECTED}, got {len(data)} bytes beginning with {data[:12]!r}") from error
    except MemoryError:
        raise
    except Exception as error:  # Pillow's decoders raise nearly anything on damaged files
        raise BadImage(f"cannot be decoded: {error or type(error).__name__}") from error


def pixels_of(picture: Image.Image, into: NDArray[np.uint8]) -> None:
    """Copy an RGB picture's pixels into an array (height, width, 3)."""
    into[...] = np.asarray(picture)


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
