"""`nms`: a graph that suppresses by itself.

It takes, by shape,
- a graph that ends in TensorRT's plugin `EfficientNMS_TRT`. ONNX Runtime cannot run it, so the node is left out and
  what it takes is used: boxes [M, A, 4] or [M, A, 1, 4], in corners or as centre and size by its `box_coding`, and
  scores [M, A, C], activated by its `score_activation`, without its `background_class`. `crop` suppresses instead,
  with the pipeline's `iou` and `threshold`;
- the same four outputs made of ordinary operators: whole counts [M, 1], boxes FLOAT [M, K, 4] as left, top, right,
  bottom, scores FLOAT [M, K], classes [M, K] (whole, or else called so);
- boxes with scores FLOAT [M, K, 5] and whole labels [M, K], as MMDetection exports them.
All in pixels of the input. One output [M, K, 6] is of family `yolov10`. Rows of all pictures in one list ([D, 7], as
YOLOv7 exports with --end2end for ONNX Runtime) do not fit a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from ..candidates import Anchors, best_of, best_rows, corners_of, ended
from ..ends import Answer, Ended, Raw
from ..graph import Nodes
from ..seams import Seams
from ..want import Want
from . import Family, register

PLUGIN = "EfficientNMS_TRT"
CENTRE = 1  # the plugin's box_coding for centre and size; 0 is corners


@dataclass(frozen=True)
class Cut:
    """What the plugin took."""

    node: onnx.NodeProto
    boxes: Raw
    scores: Raw


@dataclass(frozen=True)
class Suppressed:
    """What suppression left; without `scores` they are the fifth column of `boxes`."""

    boxes: Raw
    labels: Raw
    scores: Raw | None = None
    counts: Raw | None = None


def layout(want: Want) -> str:
    return (
        f"{PLUGIN} of boxes [M, anchors, 4] and scores [M, anchors, {want.classes}]; or outputs counts [M, 1], boxes "
        "[M, boxes, 4], scores [M, boxes], classes [M, boxes]; or boxes with scores [M, boxes, 5] and labels [M, boxes]"
    )


def read(answer: Answer, want: Want) -> Cut | Suppressed | None:
    if answer.cut is not None:
        return _cut(answer, answer.cut, want)
    return _four(answer) or _two(answer)


def hint(answer: Answer, _want: Want) -> str:
    if answer.cut is None:
        return ""
    if len(answer.outputs) != 2:
        return f"{PLUGIN} with anchors is not known here: export boxes that are decoded"
    return "give as many labels as the scores have columns, and export one box for each anchor"


def rewrite(nodes: Nodes, found: Cut | Suppressed, want: Want) -> Ended:
    if isinstance(found, Cut):
        return _suppressible(nodes, found, want)
    boxes = nodes.fp32(found.boxes.name, found.boxes.dtype)
    parts = [boxes]
    if found.scores is not None:
        scores = nodes.fp32(found.scores.name, found.scores.dtype)
        if found.counts is not None:
            scores = _counted(nodes, scores, found.counts, found.boxes.shape[1])
        parts.append(nodes.unsqueeze(scores, axis=2))
    parts.append(nodes.unsqueeze(nodes.cast(found.labels.name, TensorProto.FLOAT), axis=2))
    return best_rows(nodes, nodes.add("Concat", *parts, axis=2), found.boxes.shape[1], want)


def _cut(answer: Answer, node: onnx.NodeProto, want: Want) -> Cut | None:
    if len(answer.outputs) != 2:
        return None
    boxes, scores = answer.outputs
    fits = scores.is_float(None, want.classes) and (
        boxes.is_float(scores.shape[1], 4) or boxes.is_float(scores.shape[1], 1, 4)
    )
    return Cut(node, boxes, scores) if fits else None


def _four(answer: Answer) -> Suppressed | None:
    boxes = answer.one(lambda raw: raw.is_float(None, 4))
    counts = answer.one(lambda raw: raw.is_whole(1))
    if boxes is None or counts is None or len(answer.outputs) != 4:
        return None
    rest = [raw for raw in answer.outputs if raw not in (boxes, counts)]
    if not all(raw.is_float(boxes.shape[1]) or raw.is_whole(boxes.shape[1]) for raw in rest):
        return None
    scores = [raw for raw in rest if raw.is_float(boxes.shape[1])]
    if len(scores) == 2:
        scores = [raw for raw in scores if "score" in raw.title.lower()]
    if len(scores) != 1:
        return None
    (labels,) = (raw for raw in rest if raw is not scores[0])
    return Suppressed(boxes, labels, scores[0], counts)


def _two(answer: Answer) -> Suppressed | None:
    boxes = answer.one(lambda raw: raw.is_float(None, 5))
    labels = None if boxes is None else answer.one(lambda raw: raw.is_whole(boxes.shape[1]))
    return None if boxes is None or labels is None else Suppressed(boxes, labels)


def _suppressible(nodes: Nodes, cut: Cut, want: Want) -> Ended:
    count = cut.scores.shape[1]
    settings = {attribute.name: helper.get_attribute_value(attribute) for attribute in cut.node.attribute}
    boxes = nodes.fp32(cut.boxes.name, cut.boxes.dtype)
    if len(cut.boxes.shape) == 4:
        boxes = nodes.add("Reshape", boxes, nodes.integers(-1, count, 4))
    scores = nodes.fp32(cut.scores.name, cut.scores.dtype)
    if settings.get("score_activation", 0):
        scores = nodes.add("Sigmoid", scores)
    if 0 <= (background := settings.get("background_class", -1)) < want.classes:
        foreground = np.ones(want.classes, np.float32)
        foreground[background] = 0
        scores = nodes.add("Mul", scores, nodes.constant(foreground))
    best = best_of(nodes, Anchors(boxes, scores, count, want.classes), want)
    corners = corners_of(nodes, best.boxes) if settings.get("box_coding", 0) == CENTRE else best.boxes
    return ended(nodes, corners, best, want)


def _counted(nodes: Nodes, scores: str, counts: Raw, boxes: int) -> str:
    """The scores of boxes beyond a picture's count become 0."""
    places = nodes.constant(np.arange(boxes, dtype=np.float32)[None])
    inside = nodes.add("Less", places, nodes.cast(counts.name, TensorProto.FLOAT))
    return nodes.add("Where", inside, scores, nodes.number(0))


register(Family("nms", layout=layout, read=read, rewrite=rewrite, hint=hint, seams=Seams(cuts=frozenset({PLUGIN}))))
