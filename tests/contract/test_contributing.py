"""The examples of CONTRIBUTING.md run as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import graphs
import numpy as np
import pytest
import raw_heads

from tricade_build.families import FAMILIES
from tricade_build.fold import Front, fold
from tricade_build.heads import HEADS, Want
from tricade_build.spec import Normalize
from tricade_build.want import Want as FamilyWant

TEXT = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture
def examples() -> Iterator[list[str]]:
    """Run every block; what they register is taken back."""
    before = dict(FAMILIES), dict(HEADS)
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    for block in blocks:
        exec(compile(block, "CONTRIBUTING.md", "exec"), {})
    yield blocks
    for registry, old in zip((FAMILIES, HEADS), before, strict=True):
        registry.clear()
        registry.update(old)  # type: ignore[arg-type]


def test_the_family(examples: list[str]) -> None:
    boxes, scores = np.zeros((1, 2, 4), np.float32), np.zeros((1, 2, 3), np.float32)
    boxes[0, 1], scores[0, 1] = [8, 16, 40, 48], [0.1, 0.2, 0.4]
    model = graphs.choosing({"b": boxes, "s": scores})

    made = raw_heads.folded("corners", model, FamilyWant(raw_heads.SIZE, 3, 300))

    found = graphs.run(made.model, raw_heads.pictures(0))["CANDIDATES"]
    np.testing.assert_allclose(found, [[[8, 16, 40, 48, 0.4, 2], [0] * 6]])


def test_the_head(examples: list[str]) -> None:
    model = graphs.answering(np.array([3, 1, 2], np.float32))

    made = fold(
        model,
        Front("CROPS", (8, 8), (), Normalize()),
        lambda nodes, answer: HEADS["hardest"].end(nodes, answer, Want(2, any_width=False)),
    )

    found = graphs.run(made.model, np.zeros((1, 8, 8, 3), np.uint8))
    assert (found["INDEX"].tolist(), found["SCORE"].tolist()) == ([[1, 2]], [[1, 2]])


def test_both_were_found(examples: list[str]) -> None:
    assert len(examples) == 2
