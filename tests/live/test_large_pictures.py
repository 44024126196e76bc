"""Pictures that are large or odd, and tiles, on the real server."""

from __future__ import annotations

import io

import cascade
import numpy as np
import pytest
from PIL import Image

from tricade_client import ServerRefused


def encoded(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def sparse(count: int, *, rows: int, columns: int, seed: int) -> list[cascade.Object]:
    """At most one object in four cells: the detector's look at the whole, half as large, finds none of them."""
    random = np.random.default_rng(seed)
    places = random.permutation((rows // 2) * (columns // 2))[:count]
    colours = random.choice(list(cascade.COLOURS), count)
    return [
        cascade.Object(int(place) // (columns // 2) * 2, int(place) % (columns // 2) * 2, str(colour))
        for place, colour in zip(places, colours, strict=True)
    ]


def large(objects: list[cascade.Object], *, rows: int, columns: int) -> np.ndarray:
    """A picture of more cells than the detector's input has."""
    picture = np.full((rows * cascade.CELL, columns * cascade.CELL, 3), cascade.GROUND, np.uint8)
    edge = (cascade.CELL - cascade.SQUARE) // 2
    for thing in objects:
        top, left = thing.row * cascade.CELL + edge, thing.column * cascade.CELL + edge
        picture[top : top + cascade.SQUARE, left : left + cascade.SQUARE] = cascade.COLOURS[thing.colour]
    return picture


@pytest.fixture
def tiled(server):
    with server.client("tiled") as client:
        yield client


@pytest.mark.parametrize(("rows", "columns"), [(40, 40), (20, 40), (40, 30), (20, 20)])
@pytest.mark.parametrize("count", [0, 1, 60])
def test_small_things_in_a_large_picture_are_found_once(tiled, rows, columns, count):
    objects = sparse(count, rows=rows, columns=columns, seed=rows + count)
    result = tiled.detect(encoded(large(objects, rows=rows, columns=columns)))
    found = {(found.box, found.classes["colour"].label) for found in result}
    edge = (cascade.CELL - cascade.SQUARE) // 2
    corners = [(o.column * cascade.CELL + edge, o.row * cascade.CELL + edge, o.colour) for o in objects]
    expected = {((x, y, x + cascade.SQUARE, y + cascade.SQUARE), colour) for x, y, colour in corners}
    assert found == expected
    assert len(result) == len(objects)
    assert result.size == (rows * cascade.CELL, columns * cascade.CELL)


def test_without_tiles_they_are_too_small(squares):
    objects = sparse(60, rows=40, columns=40, seed=1)
    assert len(squares.detect(encoded(large(objects, rows=40, columns=40)))) == 0


def test_pictures_with_and_without_tiles_share_a_request(tiled):
    small, wide = cascade.objects(5, seed=3), sparse(20, rows=20, columns=40, seed=4)
    first, second, third = tiled.detect(
        [cascade.picture(small), encoded(large(wide, rows=20, columns=40)), cascade.picture()]
    )
    assert [found.classes["colour"].label for found in first] == list(cascade.expected(small).colours)
    assert sorted(found.classes["colour"].label for found in second) == sorted(thing.colour for thing in wide)
    assert len(third) == 0


def test_more_tiles_than_a_batch_are_refused(tiled):
    with pytest.raises(ServerRefused, match=r"expected at most 32 tiles in a request, got [0-9]+ of 1 images"):
        tiled.detect(encoded(np.zeros((2048 + 16, 2048 + 16, 3), np.uint8)))


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (3, 7), (321, 319)])
def test_odd_pictures_are_pictures(squares, size):
    result = squares.detect(encoded(np.zeros((*size, 3), np.uint8)))
    assert result.size == size
    assert len(result) == 0


def test_twenty_megapixels(squares):
    objects = cascade.objects(9, seed=2)
    scale = 14  # 4480 × 4480
    result = squares.detect(cascade.picture(objects, scale=scale), timeout_s=60)
    assert result.arrays["BOXES"] == pytest.approx(cascade.expected(objects, scale=scale).boxes, abs=0.05)
    assert [found.classes["colour"].label for found in result] == list(cascade.expected(objects).colours)
