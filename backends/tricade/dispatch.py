"""Getting any number of crops through a classifier: a chunk takes the ensemble's edge, the rest is called for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chunks import Chunk
from .errors import BadRequest
from .packet import Field, Packet
from .stage import Arrays, Call

Crops = NDArray[np.uint8]  # (n, h, w, 3): RGB
ANSWERS = ("INDEX", "SCORE")
_TYPES = {"INDEX": np.int32, "SCORE": np.float32, "EMBEDDING": np.float32}


@cache
def sent_of(classifier: str, answers: tuple[str, ...] = ANSWERS) -> Packet:
    """`<C>_SENT`: ROWS (r,), the detections that the edge's crops are of; REST_ROWS (s,), those whose crops were called
    for, and the answers REST_… (s, t) to them."""
    rows = (Field("ROWS", np.int32, (-1,)), Field("REST_ROWS", np.int32, (-1,)))
    rest = (Field(f"REST_{name}", _TYPES[name], (-1, -1)) for name in answers)
    return Packet(f"{classifier.upper()}_SENT", *rows, *rest)


@dataclass(frozen=True)
class Departure:
    """A classifier's crops on their way: `edge` and the `rows` it is of, `calls` and theirs."""

    classifier: str
    edge: Crops
    rows: NDArray[np.int32]
    calls: tuple[Call, ...]
    rest_rows: NDArray[np.int32]
    answers: tuple[str, ...]

    def outputs(self, answers: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
        """`<C>_CROPS` and `<C>_SENT`, with the answers to `calls`."""
        sent = sent_of(self.classifier, self.answers)
        rest = {f"REST_{name}": _stacked([answer[name] for answer in answers], name) for name in self.answers}
        rows = {"ROWS": self.rows, "REST_ROWS": self.rest_rows}
        return {f"{self.classifier.upper()}_CROPS": self.edge, sent.tensor: sent.pack(rows | rest)}


def departure_of(
    classifier: str,
    model: str,
    *,
    rows: NDArray[np.int32],
    chunks: Sequence[Chunk],
    draw: Callable[[Chunk], Crops],
    blank: Crops,
    answers: tuple[str, ...] = ANSWERS,
) -> Departure:
    """Send `chunks` on their way; `rows` are the detections of the crops, `blank` (1, h, w, 3) goes where none is,
    `answers` are the network's outputs."""
    if not chunks:
        return Departure(classifier, blank, rows, (), rows, answers)
    calls = tuple(Call(model, {"CROPS": draw(chunk)}, answers) for chunk in chunks[1:])
    rest = [rows[chunk.positions] for chunk in chunks[1:]]
    first, rest_rows = chunks[0], np.concatenate([rows[:0], *rest])
    return Departure(classifier, draw(first), rows[first.positions], calls, rest_rows, answers)


@dataclass(frozen=True)
class Answers:
    """A classifier's answers in order of detections: `rows` (r,) of them, and (r, t) by the network's outputs."""

    rows: NDArray[np.int32]
    values: Mapping[str, NDArray[Any]]

    @classmethod
    def joined(cls, classifier: str, inputs: Arrays, names: Sequence[str] = ANSWERS) -> Answers:
        """From the edge's answers and the rest's; blanks are trimmed."""
        prefix, packet = classifier.upper(), sent_of(classifier, tuple(names))
        sent = packet.unpack(inputs[packet.tensor])
        edge_rows, rest_rows = sent["ROWS"], sent["REST_ROWS"]
        edge = {name: inputs[f"{prefix}_{name}"][: len(edge_rows)] for name in names}
        if any(len(edge[name]) < len(edge_rows) or len(sent[f"REST_{name}"]) != len(rest_rows) for name in names):
            raise BadRequest(f"{packet.tensor}: expected an answer to each crop; got fewer")
        if len(rest_rows) == 0:  # one chunk, whose crops are in order of detections
            return cls(edge_rows, edge)
        rows = np.concatenate([edge_rows, rest_rows])
        order = np.argsort(rows, kind="stable")
        return cls(rows[order], {name: _stacked([edge[name], sent[f"REST_{name}"]], name)[order] for name in names})

    def of(self, detections: int) -> Answers:
        """The same; raises `BadRequest` where they are not of so many detections, one of each at most."""
        rows = self.rows
        if len(rows) and not (0 <= rows[0] <= rows[-1] < detections and (rows[1:] > rows[:-1]).all()):
            raise BadRequest(f"expected answers about {detections} detections; got some about {self.rows.tolist()}")
        return self

    @property
    def index(self) -> NDArray[np.int32]:
        return self.values["INDEX"]

    @property
    def score(self) -> NDArray[np.float32]:
        return self.values["SCORE"]


def _stacked(parts: Sequence[NDArray[Any]], name: str) -> NDArray[Any]:
    """Rows of several lengths in one array, zeros behind the shorter ones (for CTC: blanks)."""
    length = max((part.shape[1] for part in parts), default=0)
    stacked = np.zeros((sum(len(part) for part in parts), length), _TYPES[name])
    start = 0
    for part in parts:
        stacked[start : start + len(part), : part.shape[1]] = part
        start += len(part)
    return stacked
