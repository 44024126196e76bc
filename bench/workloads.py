"""What is shown to the contestants: pictures of a pipeline, each workload of one kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from io import BytesIO

import cascade
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

SMALL, MIDDLE, LARGE = (480, 640), (720, 1280), (1080, 1920)  # height, width
OBJECTS = (0, 1, 10, 100)
PAPER, INK = (250, 248, 242), (34, 40, 49)
WORDS = ["bread", "wheat", "rye", "loaf", "crust", "flour", "yeast", "oven", "salt", "water", "price", "open", "today"]


@dataclass(frozen=True)
class Workload:
    """Encoded pictures that callers send in turn."""

    name: str
    pipeline: str
    about: str
    pictures: tuple[bytes, ...]


def workloads(patterns: Iterable[str] = ("*",)) -> list[Workload]:
    """Those whose name fits one of the patterns."""
    every = [*_squares(), _squares_mixed(), *_text()]
    return [workload for workload in every if any(fnmatch(workload.name, pattern) for pattern in patterns)]


def squares(count: int, size: tuple[int, int], *, seed: int = 0) -> NDArray[np.uint8]:
    """RGB (height, width, 3), wider than high: `count` squares of the fixture cascade, up to 200, in the rows of its
    grid that are whole; letterboxed, the grid lies where the detector has it."""
    height, width = size
    scale = width // cascade.SIDE
    top = (width - height) // 2  # what the letterbox will add above
    rows = [row for row in range(cascade.GRID) if row * cascade.CELL * scale >= top]
    whole = [row for row in rows if (row + 1) * cascade.CELL * scale <= top + height]
    every = cascade.objects(cascade.GRID**2, seed=seed)
    shown = [thing for thing in every if thing.row in whole][:count]
    return cascade.pixels(shown, scale=scale)[top : top + height]


def page(size: tuple[int, int], *, lines: int, seed: int = 0) -> Image.Image:
    """Lines of words from top to bottom, in two columns where the page is wide enough."""
    height, width = size
    random = np.random.default_rng(seed)
    picture = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(picture)
    columns = 2 if width > 1000 else 1
    pitch = (height - 40) // -(-lines // columns)
    font = ImageFont.load_default(min(32, int(pitch * 0.6)))
    for line in range(lines):
        column, row = line % columns, line // columns
        text = " ".join(random.choice(WORDS, random.integers(2, 5)))
        draw.text((40 + column * width // columns, 20 + row * pitch), text, fill=INK, font=font)
    return picture


def encoded(image: Image.Image, form: str = "JPEG") -> bytes:
    """As a camera or a browser would send it."""
    buffer = BytesIO()
    image.save(buffer, form, **({"quality": 90} if form == "JPEG" else {}))
    return buffer.getvalue()


def _squares() -> list[Workload]:
    return [
        Workload(
            f"squares-{count}-{name}",
            "squares",
            f"{size[1]} × {size[0]}, {count} objects",
            (encoded(Image.fromarray(squares(count, size))),),
        )
        for name, size in (("small", SMALL), ("large", LARGE))
        for count in OBJECTS
    ]


def _squares_mixed() -> Workload:
    """Every size with every number of objects, in an order of no pattern."""
    pictures = [
        encoded(Image.fromarray(squares(count, size, seed=1))) for size in (SMALL, MIDDLE, LARGE) for count in OBJECTS
    ]
    order = np.random.default_rng(0).permutation(len(pictures))
    about = "640 × 480 to 1920 × 1080, 0 to 100 objects"
    return Workload("squares-mixed", "squares", about, tuple(pictures[place] for place in order))


def _text() -> list[Workload]:
    small = encoded(page(SMALL, lines=6))
    large = encoded(page(LARGE, lines=36))
    middle = encoded(page(MIDDLE, lines=14))
    return [
        Workload("text-small", "text", "640 × 480, 6 lines", (small,)),
        Workload("text-large", "text", "1920 × 1080, 36 lines", (large,)),
        Workload("text-mixed", "text", "640 × 480 to 1920 × 1080, 6 to 36 lines", (small, middle, large)),
    ]
