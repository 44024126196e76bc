"""Tables and pictures of results."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFont
from rich.console import Console

from tricade_cli import drawing
from tricade_cli.drawing import annotated, captions_of, font_for, undrawn
from tricade_cli.table import in_reading_order, table_of
from tricade_client import Classification, Detection, Result


def found(box, label="text", **classes):
    left, top, right, bottom = box
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    return Detection(
        label,
        0.5,
        box,
        corners,
        {name: Classification(word, 0.25, ((word, 0.25),) if word else ()) for name, word in classes.items()},
    )


def result_of(*detections, size=(100, 200), truncated=0):
    """A `Result` of these detections; its arrays the long way round."""
    n, names = len(detections), list(detections[0].classes) if detections else []
    column = lambda values: np.array(values, np.object_).reshape(n, 1)  # noqa: E731
    arrays = {
        "COUNT": np.array([n]),
        "TRUNCATED": np.array([truncated]),
        "SIZE": np.array([size]),
        "BOXES": np.array([one.box for one in detections], np.float32).reshape(n, 4),
        "CORNERS": np.array([one.corners for one in detections], np.float32).reshape(n, 4, 2),
        "SCORES": np.full(n, 0.5, np.float32),
        "LABELS": np.array([one.label for one in detections], np.object_),
    }
    for name in names:
        arrays[f"{name.upper()}_LABELS"] = column([one.classes[name].label for one in detections])
        arrays[f"{name.upper()}_SCORES"] = np.full((n, 1), 0.25, np.float32) * [
            [bool(one.classes[name])] for one in detections
        ]
    return Result(arrays)


def printed(table):
    out = StringIO()
    Console(file=out, width=200).print(table)
    return out.getvalue()


@pytest.mark.parametrize(
    ("boxes", "order"),
    [
        ([], []),
        ([(0, 0, 9, 9)], [0]),
        ([(50, 2, 90, 12), (0, 0, 40, 10)], [1, 0]),  # one line
        ([(50, 20, 90, 30), (0, 0, 40, 10), (0, 21, 40, 31)], [1, 2, 0]),  # two lines
        ([(0, 30, 9, 40), (0, 0, 9, 100), (20, 55, 29, 65)], [0, 1, 2]),  # a tall one joins a line, and ends none
    ],
)
def test_reading_order(boxes, order):
    detections = [found(box) for box in boxes]
    assert [detections.index(one) for one in in_reading_order(detections)] == order


def test_several_labels_stay_in_their_order():
    detections = [found((0, 50, 9, 60), "car"), found((0, 0, 9, 10), "person")]
    assert in_reading_order(detections) == detections


def test_tables():
    assert "200 x 100" in printed(table_of(result_of(), "x.jpg"))
    said = printed(table_of(result_of(found((1.4, 2.6, 30, 40), text="[b]Hi\n[/]", kind="")), "[i].jpg"))
    assert "[i].jpg" in said
    (row,) = [line for line in said.splitlines() if "0.50" in line]
    cells = [cell.strip() for cell in row.strip("│ ").split("│")]
    assert cells == ["1", "text", "0.50", "1, 3, 30, 40", "-", "", "[b]Hi\N{REPLACEMENT CHARACTER}[/]", "0.25"]


@pytest.mark.parametrize(
    ("detections", "captions"),
    [
        ([], []),
        ([found((0, 0, 9, 9))], ["text"]),
        ([found((0, 0, 9, 9), text="A")], ["text A"]),
        ([found((0, 0, 9, 9), turn="0", text="A"), found((0, 0, 9, 9), turn="0", text="B")], ["A", "B"]),
        ([found((0, 0, 9, 9), "car", text=""), found((0, 0, 9, 9), "sign", text="B")], ["car", "sign B"]),
        ([found((0, 0, 9, 9), text=""), found((0, 0, 9, 9), text="B")], ["text", "B"]),
        ([found((0, 0, 9, 9), text="A"), found((0, 0, 9, 9), text="A")], ["text A", "text A"]),
        ([found((0, 0, 9, 9), "x" * 50)], ["x" * 37 + "..."]),
    ],
)
def test_captions(detections, captions):
    assert captions_of(detections) == captions


def test_nothing_found_is_the_picture_itself():
    image = Image.new("RGB", (200, 100), (1, 2, 3))
    drawn = annotated(image, result_of())
    assert np.array_equal(np.asarray(drawn), np.asarray(image))
    assert drawn is not image


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "CMYK", "I;16"])
@pytest.mark.parametrize("box", [(50, 40, 120, 80), (-5, -5, 300, 300), (190, 0, 199, 5), (0, 95, 9, 99)])
def test_drawn_whatever_the_mode_and_the_place(mode, box):
    image = Image.new(mode, (200, 100))
    before = image.copy()
    drawn = annotated(image, result_of(found(box, text="Größe 中文")))
    assert (drawn.mode, drawn.size) == ("RGB", (200, 100))
    assert np.asarray(drawn).any()
    assert image == before


def test_rotation_comes_before_drawing():
    image = Image.new("RGB", (100, 200))
    image.getexif()[0x0112] = 6
    assert annotated(image, result_of(found((0, 0, 9, 9)))).size == (200, 100)


def test_another_picture_is_refused():
    with pytest.raises(ValueError, match=r"expected a picture of \(200, 100\) \(width, height\), got \(100, 200\)"):
        annotated(Image.new("RGB", (100, 200)), result_of())


def test_without_a_font_the_number_stands(monkeypatch):
    monkeypatch.setattr(drawing, "_installed", lambda: ())
    texts = []
    monkeypatch.setattr(drawing, "_write", lambda _draw, _found, text, *_: texts.append(text))
    result = result_of(found((0, 50, 9, 60), text="中文"), found((0, 0, 9, 9), text="Hi"))
    annotated(Image.new("RGB", (200, 100)), result)
    assert texts == ["Hi", "2"]
    assert undrawn(result) == 1


def test_a_font_must_have_every_character(monkeypatch):
    own = ImageFont.load_default(12)  # ASCII only
    if not isinstance(own, ImageFont.FreeTypeFont):
        pytest.skip("this Pillow has no FreeType")
    monkeypatch.setattr(drawing, "_installed", lambda: (Path("own.ttf"),))
    monkeypatch.setattr(drawing, "_font", lambda _path, _size: own)
    assert font_for("Hi there", 12) is not None
    assert font_for("Hi 中", 12) is None
    monkeypatch.setattr(drawing, "_has", lambda _font, text: "中" in text)
    assert font_for("Hi 中", 12) is own
