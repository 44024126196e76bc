"""`yolox`: one anchor for each cell of a grid; YOLOX as its own `export_onnx.py` writes it.

It takes one output [M, A, 5+C] where A is the number of cells at strides 8, 16, 32 (and 64 for P6): offset x, offset
y within the cell's grid, log width, log height in strides, objectness, and C probabilities. The graph does not show
whether that is decoded already, so a key says it: with `decoded: true` (exported with `--decode_in_inference`, and
YOLOv6) A may be anything and boxes are centre x, centre y, width, height in pixels of the input.
"""

from __future__ import annotations

from ..candidates import Best, best_of, corners_of, ended
from ..ends import Answer, Ended, Raw
from ..graph import Nodes
from ..grid import cells_of, strides_of
from ..want import Want
from . import Family, register
from .yolov5 import BOX, anchors_of


def layout(want: Want) -> str:
    rows = BOX + want.classes
    if want.decoded:
        return f"an output [M, anchors, {rows}], a box, an objectness and {want.classes} labels"
    return f"an output [M, cells, {rows}], a box for each cell at strides 8, 16, 32 (and 64) and {want.classes} labels"


def read(answer: Answer, want: Want) -> Raw | None:
    raw = answer.one(lambda raw: raw.is_float(None, BOX + want.classes))
    fits = raw is not None and (want.decoded or strides_of(want.size, raw.shape[1]) is not None)
    return raw if fits else None


def hint(answer: Answer, want: Want) -> str:
    raw = answer.one(lambda raw: raw.is_float(None, None))
    if raw is None:
        return ""
    if raw.shape[2] == BOX + want.classes:
        return f"`size` {list(want.size)} has another number of cells than {raw.shape[1]}; was it decoded on export?"
    return f"give as many labels as the network has classes: {raw.shape[2] - BOX}?"


def rewrite(nodes: Nodes, raw: Raw, want: Want) -> Ended:
    head = nodes.fp32(raw.name, raw.dtype)
    best = best_of(nodes, anchors_of(nodes, head, raw, want), want)
    boxes = best.boxes if want.decoded else _decoded(nodes, raw, best, want)
    return ended(nodes, corners_of(nodes, boxes), best, want)


def _decoded(nodes: Nodes, raw: Raw, best: Best, want: Want) -> str:
    """(offset + cell) × stride, exp(log) × stride, of the best anchors only."""
    strides = strides_of(want.size, raw.shape[1])
    assert strides is not None
    cells = nodes.add("Gather", nodes.constant(cells_of(want.size, strides)), best.anchor, axis=0)  # [M, K, 3]
    corner = nodes.slice(cells, axis=2, start=0, stop=2)
    stride = nodes.slice(cells, axis=2, start=2, stop=3)
    centre = nodes.add("Add", nodes.slice(best.boxes, axis=2, start=0, stop=2), corner)
    size = nodes.add("Exp", nodes.slice(best.boxes, axis=2, start=2, stop=4))
    return nodes.add("Mul", nodes.add("Concat", centre, size, axis=2), stride)


register(Family("yolox", layout=layout, read=read, rewrite=rewrite, hint=hint, keys=frozenset({"decoded"})))
