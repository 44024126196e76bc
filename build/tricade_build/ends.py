"""What a graph ends in before and after a family or a head has been added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from tricade.stage import Tensor

from .errors import FoldError
from .graph import Nodes

# Looks at what the network answers, appends nodes to it, and says what the graph ends in now.
End = Callable[[Nodes, "Answer"], "Ended"]

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)
_WHOLE = (TensorProto.INT32, TensorProto.INT64)


@dataclass(frozen=True)
class Raw:
    """One output of an ONNX file: its shape as measured at a batch of `batch`."""

    name: str  # in the graph
    title: str  # as the file calls it
    shape: tuple[int, ...]
    dtype: int  # TensorProto's
    tail: str  # the operator that makes it, e.g. Softmax
    batch: int

    @property
    def layout(self) -> str:
        """The shape with M for the batch; ? where the first side is not the batch."""
        batched = "M" if self.shape[:1] == (self.batch,) else "?"
        return "[" + ", ".join([batched, *map(str, self.shape[1:])]) + "]" if self.shape else "[]"

    def is_float(self, *sides: int | None) -> bool:
        """Whether it is FLOAT or FLOAT16 [M, sides]; None stands for any side."""
        return self.dtype in _FLOATS and self._has(sides)

    def is_whole(self, *sides: int | None) -> bool:
        """The same for INT32 or INT64."""
        return self.dtype in _WHOLE and self._has(sides)

    def _has(self, sides: tuple[int | None, ...]) -> bool:
        return len(self.shape) == len(sides) + 1 and all(
            side in (None, found) for side, found in zip((self.batch, *sides), self.shape, strict=True)
        )


@dataclass(frozen=True)
class Answer:
    """All that a network answers; where a plugin node was cut off its end, `cut` is that node, and what it took
    are the outputs."""

    outputs: tuple[Raw, ...]
    cut: onnx.NodeProto | None = None

    @property
    def layout(self) -> str:
        """Every output's layout, with names where there are several."""
        if len(self.outputs) == 1:
            return self.outputs[0].layout
        return ", ".join(f"{raw.title} {raw.layout}" for raw in self.outputs)

    def one(self, fits: Callable[[Raw], bool]) -> Raw | None:
        """The only output that fits; None where there is none or are several."""
        found = [raw for raw in self.outputs if fits(raw)]
        return found[0] if len(found) == 1 else None

    def expect(self, fits: Callable[[Raw], bool], expected: str) -> Raw:
        """The only output that fits, else `FoldError`."""
        if (raw := self.one(fits)) is None:
            several = sum(map(fits, self.outputs)) > 1
            hint = "; several fit: export only the one that is meant" if several else ""
            raise FoldError(f"expected an output {expected}, found {self.layout}{hint}{self.rows_hint}")
        return raw

    @property
    def rows_hint(self) -> str:
        """What to do about outputs that have no row for each picture; "" where there is none."""
        if all(raw.shape[:1] == (raw.batch,) for raw in self.outputs):
            return ""
        if all(raw.shape[:1] == (1,) for raw in self.outputs):
            return "; its batch is fixed inside: export it again with a dynamic batch"
        return (
            "; how many rows there are depends on the pictures, which no batch can hold: export it without "
            "non-maximum suppression (YOLOv7: without --end2end, with --grid), for the family of what it gives then"
        )


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
