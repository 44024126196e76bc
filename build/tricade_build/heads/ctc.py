"""`ctc`: a line of text; ends in the best character of each step, index 0 the blank."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from tricade.stage import Tensor

from ..ends import Answer, Ended, probabilities
from ..errors import FoldError
from ..graph import Nodes
from . import Head, Want, register


def end(nodes: Nodes, answer: Answer, want: Want) -> Ended:
    """[n, T, C] logits or probabilities to INDEX INT32 [n, T] and SCORE FP32 [n, T]."""
    raw = answer.expect(lambda raw: raw.is_float(None, None), "[M, steps, characters] (head ctc)")
    scores = probabilities(nodes, raw, activation="Softmax", other="Sigmoid")
    # Cheaper than TopK with k = 1: for [18, 80, 18710] 20 ms on top of the softmax instead of 30.
    nodes.cast(nodes.argmax(scores, axis=2), TensorProto.INT32, out="INDEX")
    nodes.reduce_max(scores, axis=2, out="SCORE")
    steps = (-1,) if want.any_width else raw.shape[1:2]
    return Ended((Tensor("INDEX", "INT32", steps), Tensor("SCORE", "FP32", steps)), classes=raw.shape[2])


def alphabet(characters: Sequence[str], classes: int) -> tuple[str, ...]:
    """Blank (no name), the characters, and a space where the head has one class more."""
    if classes == len(characters) + 1:
        return ("", *characters)
    if classes == len(characters) + 2:
        return ("", *characters, " ")
    raise FoldError(
        f"expected {classes - 1} characters (or {classes - 2}, and a space), as the head has {classes} classes "
        f"of which the first is the blank; got {len(characters)}"
    )


register(Head("ctc", end=end, names=alphabet, keys=frozenset({"labels"}), unique=False))
