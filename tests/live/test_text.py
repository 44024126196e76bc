"""The text pipeline against the `rapidocr` library, which runs the same ONNX files on the same pictures."""

from __future__ import annotations

from difflib import SequenceMatcher
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import skimage
from PIL import Image, ImageDraw, ImageFont
from rapidocr import RapidOCR

PAGE = Path(skimage.__file__).parent / "data" / "page.png"
# The library gives up lines it is less than half sure of; both must be as sure before they turn a line.
ORACLE = {"Global.text_score": 0.5, "Global.log_level": "error", "Cls.cls_thresh": 0.95}
WORDS = (
    "Triton serves the whole cascade",
    "detect, crop, classify, read",
    "0123456789 +-*/ (42)",
    "one call, 3 networks, 7 steps",
    "The quick brown fox jumps",
    "over the lazy dog: 19.95",
)


def drawn(lines: tuple[str, ...], *, size: int = 28, turn: int = 0) -> Image.Image:
    """Black lines on white, the whole picture turned by `turn` degrees counter-clockwise."""
    picture = Image.new("RGB", (640, 60 * len(lines) + 40), "white")
    draw = ImageDraw.Draw(picture)
    for row, line in enumerate(lines):
        draw.text((30, 30 + 60 * row), line, "black", ImageFont.load_default(size))
    return picture.rotate(turn, expand=True)


def png(picture: Image.Image) -> bytes:
    file = BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


PICTURES = {
    "page": PAGE.read_bytes(),
    "drawn": png(drawn(WORDS)),
    "small print": png(drawn(WORDS, size=16)),
    "large": png(drawn(WORDS).resize((1920, 1200))),
    "upside down": png(drawn(WORDS, turn=180)),
    "a long line": png(drawn((" ".join(WORDS[:2]),), size=13)),
}


@pytest.fixture(scope="module")
def oracle():
    return RapidOCR(params=ORACLE)


def iou(one: np.ndarray, other: np.ndarray) -> float:
    left, top = np.maximum(one[:2], other[:2])
    right, bottom = np.minimum(one[2:], other[2:])
    both = max(0.0, right - left) * max(0.0, bottom - top)
    area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return both / (sum(area) - both)


@pytest.mark.parametrize("name", PICTURES)
def test_the_same_lines_and_characters_as_the_library(text, oracle, name):
    result = text.detect(PICTURES[name])
    ours = [(np.array(found.box), found.classes["text"].label) for found in result]
    ours = [
        (box, label) for (box, label), found in zip(ours, result, strict=True) if found.classes["text"].score >= 0.5
    ]
    theirs = oracle(PICTURES[name])
    boxes = [np.array([*corners.min(axis=0), *corners.max(axis=0)]) for corners in theirs.boxes]
    assert len(ours) == len(boxes)
    characters = equal = 0
    for box, label in zip(boxes, theirs.txts, strict=True):
        overlaps = [iou(box, other) for other, _ in ours]
        nearest = int(np.argmax(overlaps))
        assert overlaps[nearest] >= 0.7, (label, ours[nearest])
        characters += len(label)
        equal += sum(block.size for block in SequenceMatcher(None, label, ours[nearest][1]).get_matching_blocks())
    assert equal >= 0.98 * characters


def test_what_is_drawn_is_read(text):
    result = text.detect(PICTURES["drawn"])
    lines = sorted(result, key=lambda found: found.box[1])
    assert [found.classes["text"].label.replace(" ", "") for found in lines] == [
        word.replace(" ", "") for word in WORDS
    ]
    assert {found.classes["orientation"].label for found in lines} == {"0"}
    assert {found.label for found in lines} == {"text"}


def test_upside_down_lines_are_turned_before_they_are_read(text):
    result = text.detect(PICTURES["upside down"])
    lines = sorted(result, key=lambda found: -found.box[1])
    assert [found.classes["text"].label.replace(" ", "") for found in lines] == [
        word.replace(" ", "") for word in WORDS
    ]
    assert {found.classes["orientation"].label for found in lines} == {"180"}


def test_an_empty_picture_has_no_text(text):
    result = text.detect(png(Image.new("RGB", (800, 600), "white")))
    assert len(result) == 0
    assert result.size == (600, 800)
    assert result.arrays["TEXT_LABELS"].shape == (0, 1)


def test_several_pictures_are_read_as_single_ones_are(text):
    together = text.detect(list(PICTURES.values())[:4])
    alone = [text.detect(picture) for picture in list(PICTURES.values())[:4]]
    for one, other in zip(together, alone, strict=True):
        assert [found.classes["text"].label for found in one] == [found.classes["text"].label for found in other]
        assert one.arrays["BOXES"] == pytest.approx(other.arrays["BOXES"], abs=0.5)


def test_more_lines_than_a_batch_are_all_read(text):
    """100 short lines: several chunks of the recognizer's batch of 32."""
    picture = Image.new("RGB", (960, 960), "white")
    draw = ImageDraw.Draw(picture)
    for number in range(100):
        draw.text(
            (20 + number % 5 * 185, 20 + number // 5 * 46), f"{number:03d} ok", "black", ImageFont.load_default(24)
        )
    result = text.detect(png(picture))
    read = sorted(found.classes["text"].label.replace(" ", "") for found in result)
    assert read == [f"{number:03d}ok" for number in range(100)]
