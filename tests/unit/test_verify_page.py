"""The page: well-formed, nothing from elsewhere, every text escaped, every plot told in words."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from tricade_build.verify import ClassifierComparison, DetectorComparison, Found, Plots, page
from tricade_build.verify.deviation import histogram_of
from tricade_build.verify.plots import MAX_POINTS, drawn

VOID = {"meta"}
NOTHING = Plots({}, np.empty((0, 2), np.float32), np.empty(0, np.float32))
EVIL = '<script>"&\' id="x" url(#x)'


class Outline(HTMLParser):
    """Elements, attributes and text; unbalanced tags fail."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def html() -> str:
    comparison = DetectorComparison(threshold=0.25, names=(EVIL,))
    random = np.random.default_rng(0)
    box = np.array([[0, 0, 10, 10]], np.float32)
    for number in range(3):
        raw = random.normal(size=(1, 4, 20)).astype(np.float32)
        found = Found(box, np.array([0.75], np.float32), np.zeros(1, np.int32))
        comparison.add(
            f"{number}{EVIL}.jpg",
            errors_of=(
                {EVIL: raw, "MAP": np.zeros((1, 4, 4), np.uint8)},
                {EVIL: raw + 0.01, "MAP": np.ones((1, 4, 4), np.uint8)},
            ),
            reference=found,
            candidate=found if number else replace(found, scores=np.array([0.1], np.float32)),
        )
    verification, plots = comparison.done(max_drop=0.01)
    return page(f"street_{EVIL}", verification, plots, {"GPU": EVIL, "precision": "int8"}).decode()


def test_balanced_and_nothing_from_elsewhere(html):
    found = Outline(html).found

    assert "script" not in {tag for tag, _ in found}
    for tag, attributes in found:
        assert tag not in {"link", "img", "iframe", "object"}
        for name, value in attributes.items():
            if name in {"href", "src", "xlink:href"}:
                assert value is not None
                assert value.startswith("#")
    assert not re.search(r"https?://", re.sub(r'xmlns(:xlink)?="[^"]*"', "", html))
    assert "@import" not in html


def test_ids_are_unique_and_known(html):
    found = Outline(html).found
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]

    assert len(ids) == len(set(ids))
    used = {attributes["xlink:href"][1:] for _, attributes in found if "xlink:href" in attributes}
    used |= set(re.findall(r'clip-path="url\(#([^)]+)\)"', html))
    assert used
    assert used <= set(ids)


def test_texts_are_shown_as_they_are(html):
    text = "".join(Outline(html).text)

    assert text.count(EVIL) >= 6  # title, heading, fact, tensor in table and plot, name, picture
    assert "Passed." in text  # one score has fallen, the ranking is the same
    assert "1 missed, 0 added" in text


def test_plots_are_well_formed_and_told_in_words(html):
    found = Outline(html).found
    plots = [attributes for tag, attributes in found if tag == "svg"]

    assert len(plots) == 4  # two tensors, scores, agreement
    assert all(plot["role"] == "img" for plot in plots)
    assert "Absolute errors of MAP: 0.0% of 48 values are equal" in str(plots[1]["aria-label"])
    assert plots[3]["aria-label"] == (
        "Agreement of each picture, sorted: 2 of 3 pictures agree wholly; the one that agrees least: 0.000"
    )
    for svg in re.findall(r"<svg .*?</svg>", html, flags=re.DOTALL):
        ElementTree.fromstring(svg)


def test_plots_take_the_page_s_colours(html):
    assert "currentColor" in html
    assert "var(--mark)" in html
    assert "#01020" not in html


def test_equal_comparisons_are_equal_bytes():
    plots = Plots({"x": histogram_of(np.array([0.0, 0.5]))}, np.array([[0.5, 0.5]], np.float32), np.ones(2, np.float32))

    assert drawn(plots) == drawn(plots)


@pytest.mark.parametrize(
    ("plots", "titles"),
    [
        (NOTHING, []),
        (replace(NOTHING, histograms={"x": histogram_of(np.zeros(3))}), ["Absolute errors of x"]),
        (replace(NOTHING, scores=np.array([[0.5, np.nan]], np.float32)), []),
        (replace(NOTHING, scores=np.array([[0.5, 0.25]], np.float32)), ["Scores, in fp32 and as served"]),
        (replace(NOTHING, agreements=np.zeros(1, np.float32)), ["Agreement of each picture, sorted"]),
    ],
)
def test_what_there_is_to_draw(plots, titles):
    assert [plot.title for plot in drawn(plots)] == titles


def test_of_many_points_the_furthest_apart_are_drawn():
    scores = np.full((3 * MAX_POINTS, 2), 0.5, np.float32)
    scores[-1, 1] = 1.0
    (plot,) = drawn(replace(NOTHING, scores=scores))

    assert plot.says.startswith(f"{3 * MAX_POINTS} pairs of scores, at most 0.500 apart")
    assert plot.svg.count("<use ") < MAX_POINTS + 50
    heights = {float(y) for y in re.findall(r'<use [^>]*x="[^"]*" y="([^"]*)"', plot.svg)}
    assert min(heights) < 20  # in the plot, 0 is the top


def test_nothing_compared():
    verification, plots = ClassifierComparison(head="ctc", names=("", "a")).done(max_drop=0.01)
    text = "".join(Outline(page("street_text", verification, plots, {}).decode()).text)

    assert "Failed. There were no crops to compare." in text
    assert "No tensor was compared." in text
