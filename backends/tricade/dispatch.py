"""Getting any number of crops through a classifier: a chunk takes the ensemble's edge, the rest is called for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chunks import Chunk
from .stage import Arrays, Call

Crops = NDArray[np.uint8]  # (n, h, w, 3): RGB
ANSWER = ("INDEX", "SCORE")


@dataclass(frozen=True)
class Departure:
    """A classifier's crops on their way: `edge` and the `rows` it is of, `calls` and theirs."""

    classifier: str
    edge: Crops
    rows: NDArray[np.int32]
    calls: tuple[Call, ...]
    rest_rows: NDArray[np.int32]

    def outputs(self, answers: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
        """The tensors of `<C>_CROPS` to `<C>_REST_SCORE`, with the answers to `calls`."""
        prefix = self.classifier.upper()
        return {
            f"{prefix}_CROPS": self.edge,
            f"{prefix}_ROWS": self.rows,
            f"{prefix}_REST_ROWS": self.rest_rows,
            f"{prefix}_REST_INDEX": _stacked([answer["INDEX"] for answer in answers], np.int32),
            f"{prefix}_REST_SCORE": _stacked([answer["SCORE"] for answer in answers], np.float32),
        }


def departure_of(
    classifier: str,
    model: str,
    *,
    rows: NDArray[np.int32],
    chunks: Sequence[Chunk],
    draw: Callable[[Chunk], Crops],
    blank: Crops,
) -> Departure:
    """Send `chunks` on their way; `rows` are the detections of the crops, `blank` (1, h, w, 3) goes where none is."""
    if not chunks:
        return Departure(classifier, blank, rows, (), rows)
    calls = tuple(Call(model, {"CROPS": draw(chunk)}, ANSWER) for chunk in chunks[1:])
    rest = [rows[chunk.positions] for chunk in chunks[1:]]
    return Departure(classifier, draw(chunks[0]), rows[chunks[0].positions], calls, np.concatenate([rows[:0], *rest]))


@dataclass(frozen=True)
class Answers:
    """A classifier's answers in order of detections: `rows` (r,) of them, `index` and `score` (r, t)."""

    rows: NDArray[np.int32]
    index: NDArray[np.int32]
    score: NDArray[np.float32]

    @classmethod
    def joined(cls, classifier: str, inputs: Arrays) -> Answers:
        """From the edge's answers and the rest's; blanks are trimmed."""
        prefix = classifier.upper()
        edge_rows = inputs[f"{prefix}_ROWS"]
        rows = np.concatenate([edge_rows, inputs[f"{prefix}_REST_ROWS"]])
        index, score = (
            _stacked([inputs[f"{prefix}_{name}"][: len(edge_rows)], inputs[f"{prefix}_REST_{name}"]], dtype)
            for name, dtype in zip(ANSWER, (np.int32, np.float32), strict=True)
        )
        order = np.argsort(rows, kind="stable")
        return cls(rows[order], index[order], score[order])


def _stacked(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """Rows of several lengths in one array, zeros behind the shorter ones (for CTC: blanks)."""
    length = max((part.shape[1] for part in parts), default=0)
    stacked = np.zeros((sum(len(part) for part in parts), length), dtype)
    start = 0
    for part in parts:
        stacked[start : start + len(part), : part.shape[1]] = part
        start += len(part)
    return stacked
