"""What a graph ends in before and after a family or a head has been added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tricade.stage import Tensor

from .errors import FoldError
from .graph import Nodes

# Looks at the network's own output, appends nodes to it, and says what the graph ends in now.
End = Callable[[Nodes, "Raw"], "Ended"]


@dataclass(frozen=True)
class Raw:
    """The one output that an ONNX file has: its shape as measured at a batch of `shape[0]`."""

    name: str
    shape: tuple[int, ...]
    dtype: int  # TensorProto.FLOAT or FLOAT16
    tail: str  # the operator that makes it, e.g. Softmax

    @property
    def layout(self) -> str:
        """The shape with M for the batch."""
        return "[" + ", ".join(["M", *map(str, self.shape[1:])]) + "]"

    def expect(self, fits: bool, expected: str, hint: str = "") -> None:
        """Refuse the layout unless it fits."""
        if not fits:
            raise FoldError(f"expected an output {expected}, found {self.layout}" + (f"; {hint}" if hint else ""))


@dataclass(frozen=True)
class Ended:
    """The new outputs without the batch, and how many classes there are."""

    outputs: tuple[Tensor, ...]
    classes: int


def probabilities(nodes: Nodes, raw: Raw, *, activation: str, other: str) -> str:
    """The output as fp32 probabilities over its last axis, adding the `activation` where the graph lacks it."""
    if raw.tail == other:
        raise FoldError(f"expected a graph that ends in {activation} or in logits, found {other}; try another head")
    logits = nodes.fp32(raw.name, raw.dtype)
    if raw.tail == activation:
        return logits
    if activation == "Softmax":
        return nodes.add(activation, logits, axis=len(raw.shape) - 1)
    return nodes.add(activation, logits)


def same_count(labels: Sequence[str], classes: int) -> tuple[str, ...]:
    """One label for each class, else `FoldError` with both numbers."""
    if len(labels) != classes:
        raise FoldError(f"expected {classes} labels, as the network has {classes} classes; got {len(labels)}")
    return tuple(labels)
