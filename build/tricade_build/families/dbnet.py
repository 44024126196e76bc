"""`dbnet`: differentiable binarization, one probability a pixel; ends in MAP UINT8 [M,H,W] = probability × 255.

It takes one output [M, 1, H, W] or [M, H, W] at the input's size, probabilities or logits: PP-OCR's text detectors.
"""

from __future__ import annotations

from onnx import TensorProto

from tricade.stage import Tensor

from ..ends import Answer, Ended, Raw
from ..graph import Nodes
from ..want import Want
from . import Family, register


def layout(want: Want) -> str:
    height, width = want.size
    return f"an output [M, 1, {height}, {width}], one probability for each pixel of the input"


def read(answer: Answer, want: Want) -> Raw | None:
    return answer.one(lambda raw: raw.is_float(1, *want.size) or raw.is_float(*want.size))


def hint(_answer: Answer, _want: Want) -> str:
    return "the sides of `size` must be multiples of the network's stride, usually 32"


def rewrite(nodes: Nodes, raw: Raw, want: Want) -> Ended:
    probability = nodes.fp32(raw.name, raw.dtype)
    if raw.tail != "Sigmoid":
        probability = nodes.add("Sigmoid", probability)
    level = nodes.add("Round", nodes.add("Mul", probability, nodes.number(255)))
    flat = nodes.add("Reshape", level, nodes.integers(-1, *want.size))
    nodes.cast(flat, TensorProto.UINT8, out="MAP")
    return Ended((Tensor("MAP", "UINT8", want.size),), classes=1)


register(
    Family(
        "dbnet",
        layout=layout,
        read=read,
        rewrite=rewrite,
        hint=hint,
        finds_boxes=False,
        keys=frozenset({"binarize", "unclip", "dilate"}),
    )
)
