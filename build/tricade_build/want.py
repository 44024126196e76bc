"""What the pipeline file says about a detector's output."""

from __future__ import annotations

from dataclasses import dataclass

MAX_CANDIDATES = 3840  # the largest K that TensorRT's TopK takes


@dataclass(frozen=True)
class Want:
    """`decoded` and `activation` concern the families that name them among their keys."""

    size: tuple[int, int]  # height, width in pixels
    classes: int
    candidates: int
    decoded: bool = False
    activation: str = "sigmoid"  # or softmax, with a last class for "nothing"
