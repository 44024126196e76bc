"""`detr`: a set of queries, each a box or nothing; RT-DETR, RF-DETR, D-FINE, DETR.

It takes, whatever their names and order, either
- boxes [M, Q, 4]: centre x, centre y, width, height as shares of the input, and logits [M, Q, C] (`activation:
  sigmoid`) or [M, Q, C+1] (`activation: softmax`, the last class is "nothing"); or
- what the exports of RT-DETR and D-FINE decode: boxes FLOAT [M, Q, 4] as left, top, right, bottom in pixels, scores
  FLOAT [M, Q], labels INT64 [M, Q]. Their input `orig_target_sizes` gets the size of the network's input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from ..candidates import Anchors, best_of, best_rows, corners_of, ended
from ..ends import Answer, Ended, Raw, probabilities
from ..graph import Nodes
from ..seams import Seams
from ..want import Want
from . import Family, register


@dataclass(frozen=True)
class Queries:
    """The boxes, and the logits [M, Q, C] or else scores and labels [M, Q]."""

    boxes: Raw
    logits: Raw | None = None
    scores: Raw | None = None
    labels: Raw | None = None


def layout(want: Want) -> str:
    return (
        f"outputs boxes [M, queries, 4] and logits [M, queries, {_columns(want)}], or boxes [M, queries, 4], "
        "scores [M, queries] and whole labels [M, queries]"
    )


def read(answer: Answer, want: Want) -> Queries | None:
    return _decoded(answer) or _plain(answer, want)


def hint(answer: Answer, want: Want) -> str:
    boxes = answer.one(lambda raw: raw.is_float(None, 4))
    if boxes is None:
        return ""
    logits = answer.one(lambda raw: raw is not boxes and raw.is_float(boxes.shape[1], None))
    if logits is None:
        return ""
    classes = logits.shape[2] - _columns(want) + want.classes
    return f"give as many labels as the network has classes: {classes}? Or choose another `activation`"


def rewrite(nodes: Nodes, queries: Queries, want: Want) -> Ended:
    count = queries.boxes.shape[1]
    boxes = nodes.fp32(queries.boxes.name, queries.boxes.dtype)
    if queries.scores and queries.labels:
        score = nodes.unsqueeze(nodes.fp32(queries.scores.name, queries.scores.dtype), axis=2)
        label = nodes.unsqueeze(nodes.cast(queries.labels.name, TensorProto.FLOAT), axis=2)
        return best_rows(nodes, nodes.add("Concat", boxes, score, label, axis=2), count, want)
    assert queries.logits is not None
    scores = _scores(nodes, queries.logits, want)
    best = best_of(nodes, Anchors(boxes, scores, count, want.classes), want)
    height, width = want.size
    scale = nodes.constant(np.array([width, height, width, height], np.float32))
    return ended(nodes, corners_of(nodes, nodes.add("Mul", best.boxes, scale)), best, want)


def _scores(nodes: Nodes, logits: Raw, want: Want) -> str:
    if want.activation == "sigmoid":
        return probabilities(nodes, logits, activation="Sigmoid", other="Softmax")
    shares = probabilities(nodes, logits, activation="Softmax", other="Sigmoid")
    return nodes.slice(shares, axis=2, start=0, stop=want.classes)


def _columns(want: Want) -> int:
    return want.classes + (want.activation == "softmax")


def _decoded(answer: Answer) -> Queries | None:
    boxes = answer.one(lambda raw: raw.is_float(None, 4))
    if boxes is None or len(answer.outputs) != 3:
        return None
    count = boxes.shape[1]
    scores, labels = answer.one(lambda raw: raw.is_float(count)), answer.one(lambda raw: raw.is_whole(count))
    return Queries(boxes, scores=scores, labels=labels) if scores and labels else None


def _plain(answer: Answer, want: Want) -> Queries | None:
    """Where four classes make both look alike, their names decide."""
    pairs = [
        Queries(boxes, logits=logits)
        for boxes in answer.outputs
        for logits in answer.outputs
        if boxes is not logits and boxes.is_float(None, 4) and logits.is_float(boxes.shape[1], _columns(want))
    ]
    if len(pairs) > 1:
        pairs = [pair for pair in pairs if "box" in pair.boxes.title.lower() or pair.boxes.title == "dets"]
    return pairs[0] if len(pairs) == 1 else None


register(
    Family(
        "detr",
        layout=layout,
        read=read,
        rewrite=rewrite,
        hint=hint,
        suppressed=True,
        keys=frozenset({"activation"}),
        seams=Seams(sizes=frozenset({"orig_target_sizes"})),
    )
)
