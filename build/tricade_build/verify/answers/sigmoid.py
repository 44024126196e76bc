"""`sigmoid`: the same classes reach the threshold, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tricade.stage import Arrays

from ..boxes import name_of
from ..tally import Compared
from . import Answer, Kind, Reading, register


def compare(reference: Arrays, candidate: Arrays, reading: Reading) -> Iterator[Answer]:
    """INDEX, SCORE (n, k), best first."""
    for crop in range(len(reference["INDEX"])):
        expected, got = (
            _sure(outputs["INDEX"][crop], outputs["SCORE"][crop], reading.threshold)
            for outputs in (reference, candidate)
        )
        compared = Compared(
            lost=expected.keys() != got.keys(),
            points=1,
            what="other classes",
            reference=_text(expected, reading),
            candidate=_text(got, reading),
        )
        yield Answer(compared, (float(reference["SCORE"][crop, 0]), float(candidate["SCORE"][crop, 0])))


def _sure(index: NDArray[np.int32], score: NDArray[Any], threshold: float) -> dict[int, float]:
    """Scores by class."""
    sure = score >= threshold
    return dict(zip(index[sure].tolist(), score[sure].tolist(), strict=True))


def _text(answer: dict[int, float], reading: Reading) -> str:
    return ", ".join(f"{name_of(reading.names, index)} {score:.2f}" for index, score in answer.items()) or "none"


register(Kind("sigmoid", "crops with the same classes", compare))
