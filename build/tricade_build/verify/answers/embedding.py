"""`embedding`: the cosine of the angle between the two vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tricade.stage import Arrays

from ..tally import Compared
from . import Answer, Kind, Reading, register

SHOWN = 4  # numbers of a vector that are named


def compare(reference: Arrays, candidate: Arrays, reading: Reading) -> Iterator[Answer]:  # noqa: ARG001
    """EMBEDDING (n, D)."""
    for expected, got in zip(reference["EMBEDDING"], candidate["EMBEDDING"], strict=True):
        similar = cosine(expected, got)
        yield Answer(
            Compared(
                lost=1 - similar,
                points=1,
                what=f"cosine similarity {similar:.4f}",
                reference=_text(expected),
                candidate=_text(got),
            )
        )


def cosine(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Of two vectors (D,), at least 0: opposite is as wrong as unrelated. 1 for two without length, 0 for one
    without length or with numbers that are not finite."""
    these, those = one.astype(np.float64), other.astype(np.float64)
    if not (np.isfinite(these).all() and np.isfinite(those).all()):
        return 0.0
    lengths = float(np.linalg.norm(these) * np.linalg.norm(those))
    if not lengths:
        return float(not these.any() and not those.any())
    return float(np.clip(these @ those / lengths, 0.0, 1.0))


def _text(vector: NDArray[Any]) -> str:
    more = ", …" if len(vector) > SHOWN else ""
    return f"{', '.join(f'{number:.3f}' for number in vector[:SHOWN])}{more}"


register(Kind("embedding", "mean cosine similarity", compare, exact=False))
