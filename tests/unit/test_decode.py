"""Every kind of picture to the same RGB pixels; everything else to one clear sentence."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageOps

from tricade.decode import picture_from_bytes
from tricade.errors import BadImage

LIMITS = {"max_bytes": 1_000_000, "max_pixels": 1_000_000}


def encoded(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def pixel(data: bytes) -> tuple[int, ...]:
    return tuple(picture_from_bytes(data, **LIMITS).pixels[0, 0].tolist())


RED = Image.new("RGB", (4, 2), (255, 0, 0))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "WEBP"])
def test_lossless_formats_keep_their_pixels(kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    picture = picture_from_bytes(encoded(RED, kind, **options), **LIMITS)
    assert (picture.height, picture.width) == (2, 4)
    assert (picture.pixels == (255, 0, 0)).all()


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("1", (2, 2), 1), (255, 255, 255)),
        (Image.new("L", (2, 2), 77), (77, 77, 77)),
        (Image.new("LA", (2, 2), (77, 255)), (77, 77, 77)),
        (Image.new("LA", (2, 2), (0, 0)), (255, 255, 255)),
        (Image.new("RGBA", (2, 2), (10, 20, 30, 255)), (10, 20, 30)),
        (Image.new("RGBA", (2, 2), (10, 20, 30, 0)), (255, 255, 255)),
        (Image.new("RGBA", (2, 2), (0, 0, 0, 51)), (204, 204, 204)),
        (RED.convert("P"), (255, 0, 0)),
        (Image.fromarray(np.full((2, 2), 0x80FF, np.uint16)), (0x80, 0x80, 0x80)),
    ],
    ids=["1", "L", "LA", "LA transparent", "RGBA", "RGBA transparent", "RGBA 20 %", "palette", "16 bits"],
)
def test_every_mode_becomes_rgb(image, expected):
    assert pixel(encoded(image)) == expected


def test_a_transparent_palette_colour_becomes_white():
    image = RED.convert("P")
    data = encoded(image, transparency=image.getpixel((0, 0)))
    assert pixel(data) == (255, 255, 255)


def test_cmyk_jpeg():
    red, green, blue = pixel(encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"))
    assert red > 250
    assert max(green, blue) < 5


def test_16_bit_rgb_keeps_the_upper_bits():
    row = b"\0" + struct.pack(">3H", 0x1234, 0xABCD, 0xFFFF)
    assert pixel(png(1, 1, depth=16, colour=2, rows=row)) == (0x12, 0xAB, 0xFF)


@pytest.mark.parametrize(("orientation", "size"), [(1, (4, 2)), (3, (4, 2)), (6, (2, 4)), (8, (2, 4))])
def test_exif_orientation_is_applied(orientation, size):
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = picture_from_bytes(encoded(RED, "JPEG", exif=exif), **LIMITS)
    assert (picture.width, picture.height) == size
    assert picture.pixels.shape == (*size[::-1], 3)


XMP = b"http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation='6'/>"


def with_segment(jpeg: bytes, marker: int, body: bytes) -> bytes:
    """A JPEG with one more segment behind its beginning."""
    return jpeg[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


@pytest.mark.parametrize("quote", [b"'", b'"'])
def test_an_orientation_in_xmp_is_applied_as_pillow_does(quote):
    data = with_segment(encoded(RED, "JPEG"), 0xE1, XMP.replace(b"'", quote))
    with Image.open(BytesIO(data)) as image:
        expected = ImageOps.exif_transpose(image).size
    picture = picture_from_bytes(data, **LIMITS)
    assert (picture.width, picture.height) == expected


def test_a_jpeg_of_12_bits_is_refused_without_an_address_in_the_answer():
    data = bytearray(encoded(RED, "JPEG"))
    frame = data.index(b"\xff\xc0")
    data[frame + 1], data[frame + 4] = 0xC1, 12
    with pytest.raises(BadImage) as caught:
        picture_from_bytes(bytes(data), **LIMITS).pixels  # noqa: B018
    assert "0x" not in str(caught.value)


def test_exif_6_turns_clockwise():
    image = Image.new("RGB", (16, 16), "black")
    image.paste((255, 255, 255), (0, 0, 16, 8))  # the upper half
    exif = Image.Exif()
    exif[0x0112] = 6
    upright = picture_from_bytes(encoded(image, "JPEG", exif=exif), **LIMITS).pixels
    assert upright[:, 8:].mean() > 240
    assert upright[:, :8].mean() < 15


NOISE = Image.effect_noise((67, 45), 90).convert("RGB")
JPEGS = {
    "4:2:0": encoded(NOISE, "JPEG", quality=85),
    "4:4:4": encoded(NOISE, "JPEG", quality=95, subsampling=0),
    "progressive": encoded(NOISE, "JPEG", progressive=True),
    "grey": encoded(NOISE.convert("L"), "JPEG"),
    "CMYK": encoded(NOISE.convert("CMYK"), "JPEG"),
    "bytes behind the end": encoded(NOISE, "JPEG") + b"more",
    "with EXIF": encoded(NOISE, "JPEG", exif=Image.Exif()),
    "RGB inside": encoded(NOISE, "JPEG", keep_rgb=True),
}


@pytest.mark.parametrize("name", JPEGS)
def test_jpegs_have_pillow_s_pixels(name):
    """Whoever decodes: libjpeg-turbo here and there, at its most exact."""
    into = np.zeros((45, 67, 3), np.uint8)
    picture_from_bytes(JPEGS[name], **LIMITS).draw(into)
    assert (into == np.asarray(Image.open(BytesIO(JPEGS[name])).convert("RGB"))).all()


def png(width: int, height: int, *, depth: int = 8, colour: int = 2, rows: bytes = b"") -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">2I5B", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


JPEG = encoded(Image.effect_noise((64, 64), 50).convert("RGB"), "JPEG")
PNG = encoded(Image.effect_noise((64, 64), 50).convert("RGB"))
GIF = encoded(RED, "GIF")
LARGE_JPEG = encoded(Image.new("RGB", (2000, 1000)), "JPEG")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected JPEG, PNG, WebP, BMP or TIFF, got 0 bytes"),
        (b"hello", "expected JPEG, PNG, WebP, BMP or TIFF, got 5 bytes beginning with b'hello'"),
        (GIF, "expected JPEG, PNG, WebP, BMP or TIFF, got"),
        (JPEG[: len(JPEG) // 2], "cannot be decoded: image file is truncated"),
        (PNG[: len(PNG) // 2], "cannot be decoded: "),
        (png(30_000, 30_000), "expected at most 1000000 pixels, got 30000 x 30000; send a smaller picture"),
        (LARGE_JPEG, "expected at most 1000000 pixels, got 2000 x 1000; send a smaller picture"),
        (JPEG[:30], "cannot be decoded: "),
        (bytes(1_000_001), "expected at most 1000000 bytes, got 1000001; send a smaller file"),
        (encoded(Image.new("F", (2, 2)), "TIFF"), "expected 8 or 16 bits per channel, got 32-bit floating point"),
    ],
    ids=[
        "empty",
        "text",
        "gif",
        "truncated jpeg",
        "truncated png",
        "bomb",
        "large jpeg",
        "jpeg's head",
        "too many bytes",
        "float",
    ],
)
def test_what_cannot_be_read_is_named(data, message):
    with pytest.raises(BadImage) as caught:
        picture_from_bytes(data, **LIMITS).pixels  # noqa: B018 - a JPEG is decoded when it is drawn
    assert message in str(caught.value)


def test_the_index_of_the_image_leads_the_message():
    assert str(BadImage("cannot be decoded").at(3)) == "image 3: cannot be decoded"
