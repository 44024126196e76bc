"""`embedding`: a vector to compare crops by; ends in EMBEDDING FP32 [n, D], of length 1 with `normalize_embedding`."""

from __future__ import annotations

from collections.abc import Sequence

from tricade.stage import Tensor

from ..ends import Answer, Ended
from ..graph import Nodes
from . import Head, Want, register

TINY = 1e-12  # in place of the length of a vector that has none


def end(nodes: Nodes, answer: Answer, want: Want) -> Ended:
    """[n, D], or [n, D, 1, 1] as pooled maps are, to the same numbers as FP32 [n, D]."""
    raw = answer.expect(
        lambda raw: raw.is_float(None) or raw.is_float(None, 1, 1), "[M, dimensions], a vector (head embedding)"
    )
    dimensions = raw.shape[1]
    vectors = nodes.fp32(raw.name, raw.dtype)
    if want.normalize:
        flat = nodes.add("Reshape", vectors, nodes.integers(-1, dimensions))
        # Squares in fp32: those of fp16 numbers above 255 would not fit into fp16.
        length = nodes.add("Max", nodes.length(flat, axis=1), nodes.number(TINY))
        nodes.add("Div", flat, length, out="EMBEDDING")
    else:
        nodes.add("Reshape", vectors, nodes.integers(-1, dimensions), out="EMBEDDING")
    return Ended((Tensor("EMBEDDING", "FP32", (dimensions,)),), classes=0)


def no_names(_labels: Sequence[str], _classes: int) -> tuple[str, ...]:
    """A vector has no classes."""
    return ()


register(Head("embedding", end=end, names=no_names, keys=frozenset({"normalize_embedding"})))
