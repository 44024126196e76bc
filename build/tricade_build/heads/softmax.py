"""`softmax`: one class of several; ends in the top k as INDEX and SCORE."""

from __future__ import annotations

from ..ends import Answer, Ended, same_count
from ..graph import Nodes
from ..top_k import best_classes
from . import Head, Want, register


def end(nodes: Nodes, answer: Answer, want: Want) -> Ended:
    """[n, C] logits or probabilities."""
    return best_classes(nodes, answer, top_k=want.top_k, activation="Softmax", other="Sigmoid")


register(Head("softmax", end=end, names=same_count))
