"""The end that `softmax` and `sigmoid` share: the k best classes."""

from __future__ import annotations

from onnx import TensorProto

from tricade.stage import Tensor

from .ends import Answer, Ended, probabilities
from .errors import FoldError
from .graph import Nodes


def best_classes(nodes: Nodes, answer: Answer, *, top_k: int, activation: str, other: str) -> Ended:
    """[n, C] to INDEX INT32 [n, k] and SCORE FP32 [n, k], descending; of equal scores the first class."""
    expected = f"[M, classes], one number for each class (head {activation.lower()})"
    raw = answer.expect(lambda raw: raw.is_float(None), expected)
    classes = raw.shape[1]
    if top_k > classes:
        raise FoldError(f"expected a top_k of at most {classes}, the network's classes; got {top_k}")
    scores = probabilities(nodes, raw, activation=activation, other=other)
    _, index = nodes.add_many("TopK", scores, nodes.integers(top_k), outs=("SCORE", ""), axis=1)
    nodes.cast(index, TensorProto.INT32, out="INDEX")
    return Ended((Tensor("INDEX", "INT32", (top_k,)), Tensor("SCORE", "FP32", (top_k,))), classes=classes)
