"""`yolov8`: one row a class, boxes as centre and size; ends in CANDIDATES FP32 [M,K,6]."""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import TensorProto

from tricade.stage import Tensor

from ..ends import Ended, Raw
from ..graph import Nodes
from . import Family, Want, register

BOX: Final = 4  # centre x, centre y, width, height in pixels of the input


def end(nodes: Nodes, raw: Raw, want: Want) -> Ended:
    """[M, 4+C, A] or [M, A, 4+C] to the K best anchors, each with its best class, by descending score."""
    head = nodes.fp32(raw.name, raw.dtype)
    if not _channels_first(raw, want.classes):
        head = nodes.add("Transpose", head, perm=[0, 2, 1])
        anchors = raw.shape[1]
    else:
        anchors = raw.shape[2]
    count = min(want.candidates, anchors)
    rows = BOX + want.classes
    scores = nodes.slice(head, axis=1, start=BOX, stop=rows)
    best = nodes.reduce_max(scores, axis=1)  # [M, A]
    score, anchor = nodes.add_many("TopK", best, nodes.integers(count), outs=("", ""), axis=1)
    # Only the columns of the best anchors are looked at any further.
    column = nodes.unsqueeze(anchor, axis=1)  # [M, 1, K]
    columns = nodes.add("Concat", *[column] * rows, axis=1)
    kept = nodes.add("GatherElements", head, columns, axis=2)  # [M, 4+C, K]
    label = nodes.argmax(nodes.slice(kept, axis=1, start=BOX, stop=rows), axis=1)  # [M, K]
    centre = nodes.slice(kept, axis=1, start=0, stop=2)
    half = nodes.add("Mul", nodes.slice(kept, axis=1, start=2, stop=BOX), nodes.constant(np.array(0.5, np.float32)))
    parts = [
        nodes.add("Sub", centre, half),
        nodes.add("Add", centre, half),
        nodes.unsqueeze(score, axis=1),
        nodes.unsqueeze(nodes.cast(label, TensorProto.FLOAT), axis=1),
    ]
    nodes.add("Transpose", nodes.add("Concat", *parts, axis=1), perm=[0, 2, 1], out="CANDIDATES")
    return Ended((Tensor("CANDIDATES", "FP32", (count, 6)),), classes=want.classes)


def _channels_first(raw: Raw, classes: int) -> bool:
    rows = BOX + classes
    expected = f"[M, {rows}, anchors] or [M, anchors, {rows}]: a box and {classes} labels (family yolov8)"
    raw.expect(len(raw.shape) == 3, expected)
    fits = [side == rows for side in raw.shape[1:]]
    raw.expect(any(fits), expected, f"as many labels as the network has classes: {min(raw.shape[1:]) - BOX}?")
    raw.expect(not all(fits), expected, "both sides could be the anchors; choose another `size`")
    return fits[0]


register(Family("yolov8", finds_boxes=True, end=end))
