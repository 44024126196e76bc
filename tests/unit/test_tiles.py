"""Where a large picture is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tricade.tiles import tiles_of


@pytest.mark.parametrize(
    ("picture", "tile", "expected"),
    [
        ((1, 1), None, [(3, 0, 0, 1, 1)]),
        ((5000, 5000), None, [(3, 0, 0, 5000, 5000)]),
        ((100, 100), (100, 100), [(3, 0, 0, 100, 100)]),
        ((100, 180), (100, 100), [(3, 0, 0, 180, 100), (3, 0, 0, 100, 100), (3, 80, 0, 180, 100)]),
        ((50, 101), (100, 100), [(3, 0, 0, 101, 50), (3, 0, 0, 100, 50), (3, 1, 0, 101, 50)]),
    ],
)
def test_table(picture, tile, expected):
    assert [tuple(row) for row in tiles_of(3, picture, tile=tile, overlap=0.2)] == expected


sides = st.integers(1, 3000)
parts = st.integers(50, 800)


@given(st.tuples(sides, sides), st.tuples(parts, parts), st.floats(0, 0.8))
def test_every_pixel_is_in_a_tile_and_neighbours_overlap(picture, tile, overlap):
    whole, *cut = tiles_of(0, picture, tile=tile, overlap=overlap).tolist()
    assert whole == [0, 0, 0, picture[1], picture[0]]
    for start, side, part in ((2, picture[0], tile[0]), (1, picture[1], tile[1])):
        spans = sorted({(row[start], row[start + 2]) for row in cut or [whole]})
        assert spans[0][0] == 0
        assert spans[-1][1] == side
        assert all(end - begin == min(side, part) for begin, end in spans)
        for (_, end), (begin, _) in pairwise(spans):
            assert end - begin >= part * overlap - 1  # starts are whole pixels
