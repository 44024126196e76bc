"""Telling equal answers from others."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bench.answers import Answer, answer_from, difference, text_difference
from bench.peers.pipeline import plain

NOTHING = {
    "COUNT": np.array([0], np.int32),
    "BOXES": np.empty((0, 4), np.float32),
    "LABELS": np.empty(0, np.object_),
    "TEXT_LABELS": np.empty((0, 1), np.object_),
}
TWO = {
    "COUNT": np.array([2], np.int32),
    "BOXES": np.array([[0, 0, 10, 10], [20, 20, 40.25, 30]], np.float32),
    "LABELS": np.array([b"text", b"text"], np.object_),
    "TEXT_LABELS": np.array([["grün".encode()], [b"red"]], np.object_),
}
ANSWER = answer_from(TWO)


@pytest.mark.parametrize("outputs", [NOTHING, TWO])
def test_json_says_the_same(outputs) -> None:
    found = answer_from(json.loads(json.dumps(plain(outputs))))
    assert difference(found, answer_from(outputs)) == ""
    assert found.classes == answer_from(outputs).classes


def test_names_are_text() -> None:
    assert (ANSWER.labels, ANSWER.classes) == (("text", "text"), {"text": ("grün", "red")})


def test_rows_beyond_the_count_are_none() -> None:
    padded = TWO | {"COUNT": np.array([0], np.int32)}
    assert difference(answer_from(padded), answer_from(NOTHING)) == ""


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (answer_from(NOTHING), "0 detections instead of 2"),
        (replace(ANSWER, boxes=ANSWER.boxes + np.float32(0.9)), ""),
        (replace(ANSWER, boxes=ANSWER.boxes + np.float32(1.5)), "boxes 1.5 pixels apart"),
        (replace(ANSWER, labels=("text", "word")), "label: 1 others"),
        (replace(ANSWER, classes={"text": ("red", "grün")}), "text: 2 others"),
        (replace(ANSWER, classes={}), "text: all others"),
    ],
)
def test_what_is_not_the_same_is_said(found: Answer, said: str) -> None:
    assert difference(found, ANSWER) == said


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (replace(ANSWER, boxes=ANSWER.boxes[::-1] + np.float32(1), classes={"text": ("red", "grün")}), ""),
        (replace(ANSWER, classes={"text": ("red", "grün")}), "2 of 2 texts are others, 'grün' is one"),
        (replace(ANSWER, classes={"text": ("grün", "read")}), "1 of 2 texts are others, 'red' is one"),
        (
            Answer(np.tile(ANSWER.boxes, (2, 1)), ("text",) * 4, {"text": ANSWER.classes["text"] * 2}),
            "4 lines, not 2",
        ),
        (answer_from(NOTHING), "2 of 2 texts are others, 'grün' is one"),
    ],
)
def test_texts_are_compared_by_where_they_are(found: Answer, said: str) -> None:
    assert text_difference(found, ANSWER) == said
