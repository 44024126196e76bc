"""What a caller hands in, to the bytes that travel."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tricade_client import BadInput, images
from tricade_client.images import Encoding, encoded, picture_from

PIXELS = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def decoded(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data))


def test_encoded_pictures_travel_as_they_are(tmp_path):
    path = tmp_path / "x.jpg"
    path.write_bytes(b"anything")
    for image in (path, str(path), b"anything", bytearray(b"anything"), memoryview(b"anything")):
        assert encoded(picture_from(image), Encoding("jpeg")) == b"anything"


@pytest.mark.parametrize(("encoding", "expected"), [("lossless", "BMP"), ("png", "PNG")])
@pytest.mark.parametrize("image", [PIXELS, PIXELS[:, ::-1][:, ::-1], Image.fromarray(PIXELS)])
def test_pixels_lose_nothing(image, encoding, expected):
    sent = decoded(encoded(picture_from(image), Encoding(encoding)))
    assert sent.format == expected
    assert np.array_equal(np.asarray(sent), PIXELS)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_modes_are_kept(mode):
    image = Image.new(mode, (5, 3), 1)
    assert np.array_equal(
        np.asarray(decoded(encoded(picture_from(image), Encoding())).convert(mode)), np.asarray(image)
    )


def test_other_modes_become_rgb():
    sent = decoded(encoded(picture_from(Image.new("CMYK", (5, 3))), Encoding()))
    assert (sent.mode, sent.size) == ("RGB", (5, 3))


def test_large_pixels_are_packed(monkeypatch):
    monkeypatch.setattr(images, "BMP_MAX_BYTES", PIXELS.size - 1)
    assert decoded(encoded(picture_from(PIXELS), Encoding())).format == "PNG"


def test_jpeg_on_demand():
    assert decoded(encoded(picture_from(Image.new("RGBA", (5, 3))), Encoding("jpeg", 80))).format == "JPEG"


@pytest.mark.parametrize("name", ["lossless", "png", "jpeg"])
def test_a_pil_image_is_taken_as_its_pixels_stand(name):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    buffer = BytesIO()
    Image.new("RGB", (6, 4)).save(buffer, "JPEG", exif=exif)
    sent = decoded(encoded(picture_from(Image.open(buffer)), Encoding(name)))
    assert sent.size == (6, 4)
    assert 0x0112 not in sent.getexif()


@pytest.mark.parametrize("image", [PIXELS.copy(), Image.fromarray(PIXELS)])
def test_kept_pixels_are_the_callers_no_more(image):
    picture = picture_from(image).kept()
    if isinstance(image, np.ndarray):
        image[:] = 0
    else:
        image.paste((0, 0, 0), (0, 0, 6, 4))
    assert np.array_equal(np.asarray(decoded(encoded(picture, Encoding()))), PIXELS)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((0, 6, 3), np.uint8), r"got uint8 \[0, 6, 3\]"),
        (PIXELS / 255, r"got float64 \[4, 6, 3\]; scale it to 0..255"),
        (PIXELS.transpose(2, 0, 1), r"put channels last"),
        (PIXELS[:, :, 0], "make three channels"),
        (PIXELS[None], r"hand in list\(array\)"),
        (np.zeros((4, 6, 4), np.uint8), "red first"),
        (Image.new("F", (5, 3)), "got PIL mode F"),
        (b"", "got 0 bytes"),
        (Path("no/such.jpg"), "no/such.jpg: cannot be read: No such file or directory"),
        (Path("/"), "/: cannot be read: Is a directory"),
        (17, "image: expected a path, bytes, a PIL image or an RGB uint8 array, got int"),
    ],
)
def test_what_is_no_image(image, message):
    with pytest.raises(BadInput, match=message):
        encoded(picture_from(image), Encoding())


def test_a_truncated_pil_image():
    buffer = BytesIO()
    Image.effect_noise((40, 30), 90).save(buffer, "PNG")
    with pytest.raises(BadInput, match="image 3: the PIL image cannot be decoded"):
        picture_from(Image.open(BytesIO(buffer.getvalue()[:400])), 3)


@pytest.mark.parametrize("wrong", [{"name": "gif"}, {"jpeg_quality": 0}, {"jpeg_quality": 101}])
def test_encodings_are_checked(wrong):
    with pytest.raises(BadInput, match="expected"):
        Encoding(**wrong)
