"""`yolov5`: a box, whether there is anything, and a score for each class; YOLOv5 and YOLOv7.

It takes one output [M, A, 5+C]: centre x, centre y, width, height in pixels of the input, objectness, and C
probabilities; a candidate's score is objectness × class. Where A is the number of cells of a YOLOX network (one
anchor a cell), `yolox` fits instead: its export looks the same and may not be decoded.
"""

from __future__ import annotations

from typing import Final

from ..candidates import Anchors, best_of, corners_of, ended
from ..ends import Answer, Ended, Raw
from ..graph import Nodes
from ..grid import strides_of
from ..want import Want
from . import Family, register

BOX: Final = 5  # centre x, centre y, width, height, objectness
RAW_DIMS: Final = 5  # of [M, 3, rows, columns, 5+C], one output a stride


def layout(want: Want) -> str:
    return f"an output [M, anchors, {BOX + want.classes}], a box, an objectness and {want.classes} labels"


def read(answer: Answer, want: Want) -> Raw | None:
    raw = answer.one(lambda raw: raw.is_float(None, BOX + want.classes))
    return None if raw is None or strides_of(want.size, raw.shape[1]) else raw


def hint(answer: Answer, _want: Want) -> str:
    raw = answer.one(lambda raw: raw.is_float(None, None))
    if raw is not None:
        return f"give as many labels as the network has classes: {raw.shape[2] - BOX}?"
    if any(len(raw.shape) == RAW_DIMS for raw in answer.outputs):
        return "these are the network's heads before they are put together: export it with its grid (YOLOv7: --grid)"
    return ""


def rewrite(nodes: Nodes, raw: Raw, want: Want) -> Ended:
    head = nodes.fp32(raw.name, raw.dtype)
    best = best_of(nodes, anchors_of(nodes, head, raw, want), want)
    return ended(nodes, corners_of(nodes, best.boxes), best, want)


def anchors_of(nodes: Nodes, head: str, raw: Raw, want: Want) -> Anchors:
    """Rows [M, A, 5+C] with objectness as the weight."""
    return Anchors(
        boxes=nodes.slice(head, axis=2, start=0, stop=4),
        scores=nodes.slice(head, axis=2, start=BOX, stop=BOX + want.classes),
        count=raw.shape[1],
        classes=want.classes,
        weight=nodes.reduce_max(nodes.slice(head, axis=2, start=4, stop=BOX), axis=2),
    )


register(Family("yolov5", layout=layout, read=read, rewrite=rewrite, hint=hint))
