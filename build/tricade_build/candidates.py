"""CANDIDATES FP32 [M,K,6], the end that all box families share: the K best boxes of each picture.

A candidate is left, top, right, bottom (network-input pixels), score, class, by descending score. A row whose score
is not above 0, or which holds a number that is not finite, is none: all of it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto

from tricade.stage import Tensor

from .ends import Ended
from .graph import Nodes
from .want import Want

LIMIT = 1e6  # pixels; nothing lies further out, and infinity does


@dataclass(frozen=True)
class Anchors:
    """All that a network proposes, in fp32: `boxes` [M, A, 4] in any form, `scores` [M, A, C] in 0..1.

    With `axis` 2 the anchors come last: [M, 4, A] and [M, C, A]. `weight` [M, A] multiplies an anchor's scores.
    """

    boxes: str
    scores: str
    count: int
    classes: int
    axis: int = 1
    weight: str = ""


@dataclass(frozen=True)
class Best:
    """The K best anchors: `boxes` [M, K, 4] as they were; `score`, `label` FP32 and `anchor` INT64 [M, K]."""

    boxes: str
    score: str
    label: str
    anchor: str
    count: int


def best_of(nodes: Nodes, anchors: Anchors, want: Want) -> Best:
    """Each anchor has its best class; of equal scores and of equal classes the first."""
    across = 3 - anchors.axis
    best = nodes.reduce_max(anchors.scores, axis=across)
    if anchors.weight:
        best = nodes.add("Mul", best, anchors.weight)
    score, anchor, count = _top(nodes, best, anchors.count, want.candidates)
    scores = _gathered(nodes, anchors.scores, anchor, sides=anchors.classes, axis=anchors.axis)
    label = nodes.cast(nodes.argmax(_positive(nodes, scores), axis=across), TensorProto.FLOAT)
    boxes = _gathered(nodes, anchors.boxes, anchor, sides=4, axis=anchors.axis)
    if anchors.axis == 2:
        boxes = nodes.add("Transpose", boxes, perm=[0, 2, 1])
    return Best(boxes, score, label, anchor, count)


def best_rows(nodes: Nodes, rows: str, count: int, want: Want) -> Ended:
    """From rows [M, A, 6] that are candidates already, in any order."""
    score = nodes.reduce_max(nodes.slice(rows, axis=2, start=4, stop=5), axis=2)
    score, anchor, count = _top(nodes, score, count, want.candidates)
    rows = _gathered(nodes, rows, anchor, sides=6, axis=1)
    label = nodes.slice(rows, axis=2, start=5, stop=6)
    return _written(nodes, (nodes.slice(rows, axis=2, start=0, stop=4), score, label), count, want)


def ended(nodes: Nodes, corners: str, best: Best, want: Want) -> Ended:
    """Write CANDIDATES; `corners` [M, K, 4] are left, top, right, bottom of the best."""
    return _written(nodes, (corners, best.score, nodes.unsqueeze(best.label, axis=2)), best.count, want)


def corners_of(nodes: Nodes, boxes: str) -> str:
    """Centre x, y, width, height [M, K, 4] to left, top, right, bottom."""
    centre = nodes.slice(boxes, axis=2, start=0, stop=2)
    half = nodes.add("Mul", nodes.slice(boxes, axis=2, start=2, stop=4), nodes.number(0.5))
    return nodes.add("Concat", nodes.add("Sub", centre, half), nodes.add("Add", centre, half), axis=2)


def _top(nodes: Nodes, score: str, anchors: int, candidates: int) -> tuple[str, str, int]:
    """The best scores [M, K], their anchors, and K."""
    count = min(candidates, anchors)
    values, index = nodes.add_many("TopK", _positive(nodes, score), nodes.integers(count), outs=("", ""), axis=1)
    return values, index, count


def _positive(nodes: Nodes, scores: str) -> str:
    """What is not above 0, or no number, becomes 0: comparing with a NaN is false."""
    zero = nodes.number(0)
    return nodes.add("Where", nodes.add("Greater", scores, zero), scores, zero)


def _gathered(nodes: Nodes, tensor: str, anchor: str, *, sides: int, axis: int) -> str:
    """The `sides` numbers of each of the best anchors; `axis` is where the tensor has its anchors."""
    across = 3 - axis
    shape = (1, 1, sides) if axis == 1 else (1, sides, 1)
    index = nodes.add("Expand", nodes.unsqueeze(anchor, axis=across), nodes.integers(*shape))
    return nodes.add("GatherElements", tensor, index, axis=axis)


def _written(nodes: Nodes, parts: tuple[str, str, str], count: int, want: Want) -> Ended:
    """`parts`: corners [M, K, 4], score [M, K], label [M, K, 1]."""
    corners, score, label = parts
    above = nodes.unsqueeze(score, axis=2)
    rows = nodes.add("Concat", corners, above, label, axis=2)
    finite = nodes.cast(nodes.add("Less", nodes.add("Abs", rows), nodes.number(LIMIT)), TensorProto.FLOAT)
    sound = nodes.add("Mul", nodes.reduce_min(finite, axis=2), above)
    zero = nodes.number(0)
    nodes.add("Where", nodes.add("Greater", sound, zero), rows, zero, out="CANDIDATES")
    return Ended((Tensor("CANDIDATES", "FP32", (count, 6)),), want.classes)
