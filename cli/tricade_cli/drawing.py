"""A result drawn into its picture: polygons, and captions in a font that has their characters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from tricade_client import Detection, Result

from .table import in_reading_order, printable

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Colour = tuple[int, int, int]

# Okabe and Ito's colours, told apart by colour-blind readers too.
_COLOURS: tuple[Colour, ...] = ((213, 94, 0), (0, 114, 178), (0, 158, 115), (204, 121, 167), (230, 159, 0))
_LONGEST = 40  # characters of a caption

# Fonts with many scripts, as distributions name their files; the first that has all characters is taken.
_FONTS = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.*",
    "NotoSansCJK*-Regular.*",
    "NotoSansCJK*.ttc",
    "SourceHanSans*.*",
    "wqy-*.tt?",
    "DroidSansFallback*.ttf",
    "ukai.ttc",
    "uming.ttc",
    "Arial Unicode.ttf",
    "PingFang.ttc",
    "msyh.tt?",
    "unifont*.?tf",
)
_FONT_FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    f"{os.environ.get('WINDIR', 'C:/Windows')}/Fonts",
)


def annotated(image: Image.Image, result: Result) -> Image.Image:
    """An upright RGB copy with every detection's polygon and caption.

    A caption that no font here can draw is the detection's number in the table. Raises `ValueError` for a picture
    of another size than the result's.
    """
    picture = _rgb(ImageOps.exif_transpose(image))
    if picture.size != result.size[::-1]:
        raise ValueError(f"expected a picture of {result.size[::-1]} (width, height), got {picture.size}")
    draw = ImageDraw.Draw(picture)
    size = min(max(max(picture.size) // 60, 12), 48)
    rows = in_reading_order(result.detections)
    labels = sorted({found.label for found in rows})
    captions = captions_of(rows)
    for number, (found, caption) in enumerate(zip(rows, captions, strict=True), start=1):
        colour = _COLOURS[labels.index(found.label) % len(_COLOURS)]
        font = font_for(caption, size)
        text, font = (caption, font) if font else (str(number), ImageFont.load_default(size))
        draw.polygon(found.corners, outline=colour, width=max(2, size // 8))
        _write(draw, found, text, font, colour)
    return picture


def captions_of(rows: list[Detection]) -> list[str]:
    """The names each detection was given, without those that all have in common, unless nothing is left."""
    names = [[found.label, *(answer.label for answer in found.classes.values())] for found in rows]
    columns = list(zip(*names, strict=True))
    told = [index for index, column in enumerate(columns) if len(set(column)) > 1] or range(
        bool(columns) and len(columns)
    )
    captions = (" ".join(name for index in told if (name := row[index])) or row[0] for row in names)
    return [_shortened(printable(caption)) for caption in captions]


def undrawn(result: Result) -> int:
    """How many captions no font here can draw."""
    return sum(font_for(caption, 12) is None for caption in captions_of(list(result.detections)))


def font_for(text: str, size: int) -> Font | None:
    """Pillow's own font for ASCII, else an installed one that has every character; None without."""
    if text.isascii():
        return ImageFont.load_default(size)
    return next((font for path in _installed() if _has(font := _font(path, size), text)), None)


def _write(draw: ImageDraw.ImageDraw, found: Detection, text: str, font: Font, colour: Colour) -> None:
    """Above the box on a ground of its colour, or at its top where there is no room above; never off the side."""
    left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
    wide, high = right - left + 4, bottom - top + 4
    picture_width, _ = draw.im.size
    x = max(0.0, min(found.box[0], picture_width - wide))
    y = found.box[1] - high if found.box[1] >= high else max(found.box[1], 0.0)
    draw.rectangle((x, y, x + wide, y + high), fill=colour)
    draw.text((x + 2 - left, y + 2 - top), text, font=font, fill="white")


def _rgb(image: Image.Image) -> Image.Image:
    """A copy; of 16 bits the upper 8, as the server sees them."""
    if image.mode.startswith("I"):
        upper = (np.clip(np.asarray(image), 0, 65535) >> 8).astype(np.uint8)
        return Image.fromarray(upper).convert("RGB")
    return image.convert("RGB") if image.mode != "RGB" else image.copy()


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _has(font: ImageFont.FreeTypeFont, text: str) -> bool:
    """No character is drawn as the font's sign for a missing one."""
    missing = bytes(font.getmask("\U0010ffff"))
    return all(character.isspace() or bytes(font.getmask(character)) != missing for character in set(text))


@lru_cache(maxsize=64)
def _font(path: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size)


@lru_cache(maxsize=1)
def _installed() -> tuple[Path, ...]:
    """Installed fonts of the list above, in its order."""
    files = list(_font_files())
    return tuple(path for pattern in _FONTS for path in files if path.match(pattern))


def _font_files() -> Iterator[Path]:
    for folder in _FONT_FOLDERS:
        yield from sorted(Path(folder).expanduser().rglob("*.[to]t[fc]"))
