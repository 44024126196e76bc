"""Pictures of which the answer is known."""

from __future__ import annotations

from io import BytesIO

import cascade
import numpy as np
import pytest
from PIL import Image

from bench.workloads import LARGE, MIDDLE, SMALL, page, squares, workloads
from tricade.letterbox import place


@pytest.mark.parametrize("size", [SMALL, MIDDLE, LARGE])
@pytest.mark.parametrize("count", [0, 1, 100])
def test_letterboxed_a_picture_is_the_fixture_s_own(size: tuple[int, int], count: int) -> None:
    """Its whole rows are those of the fixture's picture with the same objects, and above and below is grey."""
    found = squares(count, size)
    canvas = np.zeros((cascade.SIDE, cascade.SIDE, 3), np.uint8)
    placement = place(found, canvas, resize="letterbox", pad=114)
    first = -(-placement.top // cascade.CELL) * cascade.CELL  # rows of pixels of the first whole row of cells
    inner = canvas[first : cascade.SIDE - first].reshape(-1, cascade.CELL, cascade.GRID, cascade.CELL, 3)

    coloured = (inner.max(axis=-1) != inner.min(axis=-1)).sum(axis=(1, 3))

    assert found.shape == (*size, 3)
    assert set(np.unique(coloured)) <= {0, cascade.SQUARE**2}
    assert (coloured > 0).sum() == count


def test_the_same_picture_each_time() -> None:
    assert [each.pictures for each in workloads()] == [each.pictures for each in workloads()]


def test_names_are_found_by_pattern() -> None:
    assert [each.name for each in workloads(["text-small", "squares-1*-large"])] == [
        "squares-1-large",
        "squares-10-large",
        "squares-100-large",
        "text-small",
    ]
    assert workloads(["nothing"]) == []


def test_sizes_are_those_that_are_said() -> None:
    for each in workloads():
        sizes = {Image.open(BytesIO(picture)).size for picture in each.pictures}
        assert f"{min(sizes)[0]} × {min(sizes)[1]}" in each.about
        assert f"{max(sizes)[0]} × {max(sizes)[1]}" in each.about


def test_a_page_has_its_lines_apart() -> None:
    """Dark rows of pixels come in as many runs as there are lines."""
    dark = (np.asarray(page(SMALL, lines=6).convert("L")) < 128).any(axis=1)
    starts = np.flatnonzero(np.diff(dark.astype(int)) == 1)
    assert len(starts) == 6
