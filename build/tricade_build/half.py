"""`half_from`: a folded graph with the network's part in fp16; pixels, decoding, inputs and outputs stay in fp32.

ONNX Runtime's own converter knows nodes by names, which may be missing, rounds between neighbours that stay in fp32,
so also within the decoding, and leaves casts at the graph's end, out of order: hence this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx

from .fold import Folded
from .fuse import fuse, own
from .half_nodes import HalfNodes
from .half_rules import Asked, full_nodes
from .kept import kept, named
from .largest import largest_of
from .prove import prove
from .widen import FULL, widen
from .wires import wires_of

__all__ = ["half_from", "largest_of"]


def half_from(
    folded: Folded,
    *,
    keep: Sequence[str] = (),
    largest: Mapping[str, float] | None = None,
    widths: Sequence[int] = (),
) -> Folded:
    """A copy in fp16, proven; raises `FoldError`.

    `keep`: patterns of names of nodes, as the user's file has them, that stay in fp32. `largest`: the largest |x| of
    the fp32 graph's tensors, by `largest_of`; nodes with one above 65504 / 2, half of what fp16 holds, stay too.
    `widths`: what it is proven at where its width is open.
    """
    model = onnx.ModelProto()
    model.CopyFrom(folded.model)
    named(model)
    _widen(model)
    wanted = kept(model.graph, keep)
    into = fuse(model)
    wires = wires_of(model)
    asked = Asked(frozenset(into.get(name, name) for name in wanted), largest or {})
    nodes = HalfNodes(wires, full_nodes(wires, asked), fixed={*wires.outputs, *folded.raw})
    nodes.replace(model.graph)
    prove(model, folded.shapes, _shapes(folded, widths))
    return replace(folded, model=model)


def _widen(model: onnx.ModelProto) -> None:
    """All in fp32, without the casts between: what a file has in fp16 already is no reason for a cast more."""
    widen(model.graph)
    types = wires_of(model).types
    for node in own(model.graph):
        if node.op_type == "Cast" and types.get(node.input[0]) == FULL == types.get(node.output[0]):
            node.op_type = "Identity"
            del node.attribute[:]


def _shapes(folded: Folded, widths: Sequence[int]) -> list[tuple[int, ...]]:
    """One picture of the narrowest and of the widest; none where nobody says which width it takes."""
    height, width, channels = folded.shapes.input.dims
    sides = [width] if width != -1 else sorted({*widths[:1], *widths[-1:]})
    return [(1, height, side, channels) for side in sides]
