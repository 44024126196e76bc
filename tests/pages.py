"""Drawn pages of text in many looks: what a text pipeline is calibrated with and verified on in tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

WORDS = """\
invoice total amount due pallet north harbour Winter 2026 barcode 4711 receipt No. 88-1503 net gross VAT 19% Street
house fresh bread coffee 12.50 EUR thank you please keep dry fragile this side up gate B17 platform 9 Exit emergency
open closed Monday Friday 08:00 17:30 serial X9-204 batch LOT weight 25 kg made in Norway""".split()  # noqa: SIM905
TURNS = (0, 0, 0, 0, 180, 3, -4)  # degrees; most text stands upright


def page(seed: int) -> Image.Image:
    """A picture of 480 to 1280 pixels a side with 4 to 12 lines of text, the same for the same seed."""
    random = np.random.default_rng(seed)
    width, height = (int(side) for side in random.integers(480, 1280, 2))
    dark = random.random() < 0.2
    picture = _ground(random, width, height, dark=dark)
    top = int(random.integers(10, 30))
    for _ in range(random.integers(4, 13)):
        line = _line(random, light=dark)
        if top + line.height > height:
            break
        left = int(random.integers(5, max(6, width - line.width)))
        picture.paste(line, (left, top), line)
        top += line.height + int(random.integers(6, 40))
    blur = float(random.choice([0, 0, 0.6, 1.0]))
    return picture.filter(ImageFilter.GaussianBlur(blur)) if blur else picture


def write(folder: Path, *, count: int, first: int = 0) -> Path:
    """`count` pages as JPEG and PNG files; another `first` gives others."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + count):
        if seed % 3:
            page(seed).save(folder / f"{seed:04}.jpg", quality=70 + seed % 25)
        else:
            page(seed).save(folder / f"{seed:04}.png")
    return folder


def _ground(random: np.random.Generator, width: int, height: int, *, dark: bool) -> Image.Image:
    """Paper in some colour, lit from one side, with some noise."""
    colour = random.integers(0, 90, 3) if dark else random.integers(150, 256, 3)
    light = np.linspace(0.85, 1.0, width)[None, :, None]
    noise = random.normal(0, random.uniform(0, 6), (height, width, 1))
    return Image.fromarray(np.clip(colour * light + noise, 0, 255).astype(np.uint8))


def _line(random: np.random.Generator, *, light: bool) -> Image.Image:
    """One line of ink on nothing, turned."""
    text = " ".join(random.choice(WORDS, random.integers(1, 6)))
    font = ImageFont.load_default(size=int(random.integers(18, 56)))
    left, top, right, bottom = font.getbbox(text)
    levels = random.integers(190, 256, 3) if light else random.integers(0, 100, 3)
    ink = tuple(map(int, levels))
    line = Image.new("RGBA", (int(right - left) + 8, int(bottom - top) + 8), (*ink, 0))
    ImageDraw.Draw(line).text((4 - left, 4 - top), text, font=font, fill=(*ink, 255))
    return line.rotate(int(random.choice(TURNS)), expand=True, resample=Image.Resampling.BICUBIC)
