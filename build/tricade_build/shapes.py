"""What `config.pbtxt` says about a network."""

from __future__ import annotations

from dataclasses import dataclass

from tricade.stage import Tensor


@dataclass(frozen=True)
class Shapes:
    """Tensors without the batch, and how many classes the network knows."""

    input: Tensor
    outputs: tuple[Tensor, ...]
    classes: int
