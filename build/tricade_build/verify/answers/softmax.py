"""`softmax`: the same class comes first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tricade.stage import Arrays

from ..boxes import name_of
from ..tally import Compared
from . import Answer, Kind, Reading, register


def compare(reference: Arrays, candidate: Arrays, reading: Reading) -> Iterator[Answer]:
    """INDEX, SCORE (n, k), best first."""
    both = (reference, candidate)
    firsts = np.stack([outputs["INDEX"][:, 0] for outputs in both], axis=1)
    scores = np.stack([outputs["SCORE"][:, 0] for outputs in both], axis=1)
    for (expected, got), (sure, as_sure) in zip(firsts.tolist(), scores.tolist(), strict=True):
        compared = Compared(
            lost=expected != got,
            points=1,
            what="another class",
            reference=f"{name_of(reading.names, expected)} {sure:.2f}",
            candidate=f"{name_of(reading.names, got)} {as_sure:.2f}",
        )
        yield Answer(compared, (sure, as_sure))


register(Kind("softmax", "crops with the same class", compare))
