"""`yolov8`: a box and a score for each class; YOLOv8, v9, 11, 12 and v5u as Ultralytics exports them.

It takes one output [M, 4+C, A], or the same turned, [M, A, 4+C]: centre x, centre y, width, height in pixels of the
input, and C probabilities. A file exported with `nms=True` is of family `yolov10`.
"""

from __future__ import annotations

from typing import Final

from ..candidates import Anchors, best_of, corners_of, ended
from ..ends import Answer, Ended, Raw
from ..graph import Nodes
from ..want import Want
from . import Family, register

BOX: Final = 4  # centre x, centre y, width, height


def layout(want: Want) -> str:
    rows = BOX + want.classes
    return f"an output [M, {rows}, anchors] or [M, anchors, {rows}], a box and {want.classes} labels"


def read(answer: Answer, want: Want) -> Raw | None:
    rows = BOX + want.classes
    raw = answer.one(lambda raw: raw.is_float(rows, None) or raw.is_float(None, rows))
    return None if raw is None or raw.is_float(rows, rows) else raw


def hint(answer: Answer, want: Want) -> str:
    raw = answer.one(lambda raw: raw.is_float(None, None))
    if raw is None:
        return ""
    if raw.is_float(BOX + want.classes, BOX + want.classes):
        return "both sides could be the anchors; choose another `size`"
    return f"give as many labels as the network has classes: {min(raw.shape[1:]) - BOX}?"


def rewrite(nodes: Nodes, raw: Raw, want: Want) -> Ended:
    rows = BOX + want.classes
    axis = 2 if raw.shape[1] == rows else 1  # where the anchors are
    head = nodes.fp32(raw.name, raw.dtype)
    anchors = Anchors(
        boxes=nodes.slice(head, axis=3 - axis, start=0, stop=BOX),
        scores=nodes.slice(head, axis=3 - axis, start=BOX, stop=rows),
        count=raw.shape[axis],
        classes=want.classes,
        axis=axis,
    )
    best = best_of(nodes, anchors, want)
    return ended(nodes, corners_of(nodes, best.boxes), best, want)


register(Family("yolov8", layout=layout, read=read, rewrite=rewrite, hint=hint))
