"""`sigmoid`: each class for itself; ends in the top k as INDEX and SCORE. `threshold` empties the weak ones."""

from __future__ import annotations

from ..ends import Answer, Ended, same_count
from ..graph import Nodes
from ..top_k import best_classes
from . import Head, Want, register


def end(nodes: Nodes, answer: Answer, want: Want) -> Ended:
    """[n, C] logits or probabilities."""
    return best_classes(nodes, answer, top_k=want.top_k, activation="Sigmoid", other="Softmax")


register(Head("sigmoid", end=end, names=same_count, keys=frozenset({"labels", "top_k", "threshold"})))
