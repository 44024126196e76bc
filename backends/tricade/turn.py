"""`turn`: crops that another classifier says are upside down are turned before they reach theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from .chunks import Chunk, chunks_of
from .dispatch import ANSWERS, Answers, departure_of
from .settings import Names, Size, settings_from_parameters
from .stage import Arrays, Infer, ModelSpec, Stage


@dataclass(frozen=True)
class TurnSettings:
    """`upright` is the classifier that is asked, `turned` the index by which it says upside down."""

    classifier: str
    upright: str
    turned: int
    threshold: float
    model: str
    size: Size
    pad: int
    max_batch: int
    widths: tuple[int, ...] | None = None
    answers: Names = ANSWERS

    @property
    def steps(self) -> tuple[int, ...]:
        return self.widths or (self.size[1],)


class Turn(Stage):
    """`<C>_PACKED`, `<C>_WIDTHS`, `<C>_PACKED_ROWS` and the answers of `upright` to `<C>_CROPS` and `<C>_SENT`."""

    def __init__(self, settings: TurnSettings) -> None:
        self.settings = settings

    @classmethod
    def load(cls, spec: ModelSpec) -> Self:
        return cls(settings_from_parameters(TurnSettings, spec.parameters, where=spec.name))

    def process(self, inputs: Arrays, infer: Infer) -> dict[str, NDArray[Any]]:
        settings, prefix = self.settings, self.settings.classifier.upper()
        height = settings.size[0]
        rows, widths = inputs[f"{prefix}_PACKED_ROWS"], inputs[f"{prefix}_WIDTHS"]
        turned = np.isin(rows, self._upside_down(inputs))
        crops = _unpacked(inputs[f"{prefix}_PACKED"], widths, height)

        def draw(chunk: Chunk) -> NDArray[np.uint8]:
            batch = np.empty((len(chunk.positions), height, chunk.width, 3), np.uint8)
            for canvas, position in zip(batch, chunk.positions, strict=True):
                crop = crops[position]
                canvas[:, : crop.shape[1]] = crop[::-1, ::-1] if turned[position] else crop
                canvas[:, crop.shape[1] :] = settings.pad
            return batch

        departure = departure_of(
            settings.classifier,
            settings.model,
            rows=rows,
            chunks=chunks_of(widths, settings.steps, max_batch=settings.max_batch),
            draw=draw,
            blank=np.full((1, height, settings.steps[0], 3), settings.pad, np.uint8),
            answers=settings.answers,
        )
        return departure.outputs(infer(departure.calls))

    def _upside_down(self, inputs: Arrays) -> NDArray[np.int32]:
        """The rows whose best answer is `turned` with a score above the threshold."""
        answers = Answers.joined(self.settings.upright, inputs)
        if len(answers.rows) == 0:
            return answers.rows
        sure = (answers.index[:, 0] == self.settings.turned) & (answers.score[:, 0] > self.settings.threshold)
        return answers.rows[sure]


def _unpacked(packed: NDArray[np.uint8], widths: NDArray[np.int32], height: int) -> list[NDArray[np.uint8]]:
    ends = np.cumsum(widths.astype(np.int64) * height * 3)
    return [
        packed[end - width * height * 3 : end].reshape(height, width, 3)
        for width, end in zip(widths, ends, strict=True)
    ]
