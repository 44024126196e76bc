"""`dbnet`: differentiable binarization, one probability a pixel; ends in MAP UINT8 [M,H,W] = probability × 255."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tricade.stage import Tensor

from ..ends import Ended, Raw
from ..graph import Nodes
from . import Family, Want, register


def end(nodes: Nodes, raw: Raw, want: Want) -> Ended:
    """[M, 1, H, W] or [M, H, W] at the input's size, probabilities or logits."""
    height, width = want.size
    raw.expect(
        raw.shape[1:] in ((1, height, width), (height, width)),
        f"[M, 1, {height}, {width}], one probability for each pixel of the input (family dbnet)",
        "the sides of `size` must be multiples of the network's stride, usually 32",
    )
    probability = nodes.fp32(raw.name, raw.dtype)
    if raw.tail != "Sigmoid":
        probability = nodes.add("Sigmoid", probability)
    level = nodes.add("Round", nodes.add("Mul", probability, nodes.constant(np.array(255, np.float32))))
    flat = nodes.add("Reshape", level, nodes.integers(-1, height, width))
    nodes.cast(flat, TensorProto.UINT8, out="MAP")
    return Ended((Tensor("MAP", "UINT8", want.size),), classes=1)


register(Family("dbnet", finds_boxes=False, end=end))
