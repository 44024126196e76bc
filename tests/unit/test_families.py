"""`tricade_build.families`: `yolov8` and `dbnet` by hand; `test_families_boxes.py` has what all box families share."""

from __future__ import annotations

import graphs
import numpy as np
import pytest
from numpy.typing import NDArray

from tricade_build.errors import FoldError
from tricade_build.families import FAMILIES
from tricade_build.fold import Folded, Front, fold
from tricade_build.spec import Normalize
from tricade_build.want import Want

SIZE = (32, 64)  # height, width
BLANK = np.zeros((1, *SIZE, 3), np.uint8)


def folded(
    family: str, value: NDArray[np.floating], *tail: str, classes: int = 2, candidates: int = 4, opset: int = 13
) -> Folded:
    """A network that answers `value` whatever it sees, through the operators `tail`."""
    want = Want(SIZE, classes, candidates)
    model = graphs.answering(value, *tail, opset=opset)
    front = Front("TENSOR", SIZE, (), Normalize())
    return fold(model, front, lambda nodes, raw: FAMILIES[family].end(nodes, raw, want))


def yolov8(anchors: list[list[float]], *, rows: int = 6) -> NDArray[np.float32]:
    """Anchors (cx, cy, w, h, score, score, …) as yolov8 lays them out, [rows, anchors]."""
    return np.array(anchors, np.float32).reshape(-1, rows).T


NOTHING = [0.0] * 6


@pytest.mark.parametrize(
    ("anchors", "expected"),
    [
        ([NOTHING] * 3, [[0, 0, 0, 0, 0, 0]] * 3),  # fewer anchors than candidates: K is their number
        ([[10, 20, 4, 8, 0.1, 0.9]], [[8, 16, 12, 24, 0.9, 1]]),
        # descending scores, each with its best class
        (
            [[10, 20, 4, 8, 0.1, 0.3], [640.25, 5, 0.5, 2, 0.7, 0.2]],
            [[640, 4, 640.5, 6, 0.7, 0], [8, 16, 12, 24, 0.3, 1]],
        ),
        # the best four of five; of equal scores and of equal classes the first
        (
            [
                [2, 2, 2, 2, 0.5, 0.5],
                [4, 2, 2, 2, 0.1, 0],
                [6, 2, 2, 2, 0, 0.5],
                [8, 2, 2, 2, 0.2, 0],
                [9, 2, 2, 2, 0.3, 0],
            ],
            [[1, 1, 3, 3, 0.5, 0], [5, 1, 7, 3, 0.5, 1], [8, 1, 10, 3, 0.3, 0], [7, 1, 9, 3, 0.2, 0]],
        ),
    ],
)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_yolov8(anchors: list[list[float]], expected: list[list[float]], transposed: bool, opset: int) -> None:
    raw = yolov8(anchors)

    made = folded("yolov8", raw.T if transposed else raw, opset=opset)

    assert made.shapes.outputs[0].dims == (len(expected), 6)
    np.testing.assert_allclose(graphs.run(made.model, BLANK)["CANDIDATES"], [expected], rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((85, 100), r"\[M, 6, anchors\] or \[M, anchors, 6\].*found \[M, 85, 100\]"),
        ((84, 100), "found .*as many labels as the network has classes: 80?"),
        ((6,), r"found \[M, 6\]"),
        ((1, 6, 10), r"found \[M, 1, 6, 10\]"),
    ],
)
def test_yolov8_refuses_another_layout(shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(FoldError, match=said):
        folded("yolov8", np.zeros(shape, np.float32))


def test_yolov8_refuses_two_sides_that_could_be_the_anchors() -> None:
    with pytest.raises(FoldError, match=r"found \[M, 7, 7\]; both sides could be the anchors"):
        folded("yolov8", np.zeros((7, 7), np.float32), classes=3)


@pytest.mark.parametrize(
    ("logit", "level"),
    [(-60, 0), (60, 255), (0, 128), (np.log(1 / 4), 51), (np.log(4), 204), (np.log(0.499 / 254.501), 0)],
)
@pytest.mark.parametrize("channel", [(1,), ()])
@pytest.mark.parametrize("tail", [(), ("Sigmoid",), ("Sigmoid", "Identity")])
def test_dbnet_writes_probabilities_as_bytes(
    logit: float, level: int, channel: tuple[int, ...], tail: tuple[str, ...]
) -> None:
    made = folded("dbnet", np.full((*channel, *SIZE), logit, np.float32), *tail)

    found = graphs.run(made.model, BLANK)["MAP"]

    assert (found.dtype, found.shape) == (np.uint8, (1, *SIZE))
    assert np.all(found == level)


def test_dbnet_keeps_every_pixel_in_its_place() -> None:
    levels = np.random.default_rng(0).integers(1, 255, (1, *SIZE))
    logits = np.log(levels / 255) - np.log1p(-levels / 255)

    found = graphs.run(folded("dbnet", logits.astype(np.float32)).model, BLANK)["MAP"]

    np.testing.assert_array_equal(found, levels)


@pytest.mark.parametrize("shape", [(2, *SIZE), (1, 16, 32), (1, 64, 32), (2048,)])
def test_dbnet_refuses_another_layout(shape: tuple[int, ...]) -> None:
    with pytest.raises(FoldError, match=r"\[M, 1, 32, 64\], one probability for each pixel.*found \[M, "):
        folded("dbnet", np.zeros(shape, np.float32))


def test_bytes_are_made_last_also_where_a_batch_of_one_is_opened() -> None:
    """TensorRT knows UINT8 at the borders of a graph only."""
    model = graphs.answering(np.zeros((1, *SIZE), np.float32), entry=(1, 3, *SIZE))
    front, want = Front("TENSOR", SIZE, (), Normalize(), single=True), Want(SIZE, 1, 300)

    made = fold(model, front, lambda nodes, answer: FAMILIES["dbnet"].end(nodes, answer, want)).model

    assert {node.op_type for node in made.graph.node if "MAP" in node.output} == {"Cast"}
    assert not any("MAP" in node.input for node in made.graph.node)
    assert graphs.run(made, BLANK)["MAP"].shape == (1, *SIZE)
