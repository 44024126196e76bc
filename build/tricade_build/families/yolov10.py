"""`yolov10`: end to end, one box for each thing; YOLOv10, YOLO26, and Ultralytics exports with `nms=True`.

It takes one output [M, K, 6], K at most 3840: left, top, right, bottom in pixels of the input, score, class.
"""

from __future__ import annotations

from ..candidates import best_rows
from ..ends import Answer, Ended, Raw
from ..graph import Nodes
from ..want import MAX_CANDIDATES, Want
from . import Family, register


def layout(_want: Want) -> str:
    return f"an output [M, boxes, 6] of at most {MAX_CANDIDATES} boxes: left, top, right, bottom, score, class"


def read(answer: Answer, _want: Want) -> Raw | None:
    return answer.one(lambda raw: raw.is_float(None, 6) and raw.shape[1] <= MAX_CANDIDATES)


def rewrite(nodes: Nodes, raw: Raw, want: Want) -> Ended:
    return best_rows(nodes, nodes.fp32(raw.name, raw.dtype), raw.shape[1], want)


register(Family("yolov10", layout=layout, read=read, rewrite=rewrite, suppressed=True))
