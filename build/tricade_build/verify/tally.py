"""What is counted while samples are compared, whatever the network."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tricade.stage import Arrays

from .deviation import Deviations
from .plots import Plots
from .verification import WORST, Verification, Worst

EQUAL = 1e-6  # less than this is rounding in fp32


@dataclass(frozen=True)
class Compared:
    """Two answers to one sample: `lost` of its `points` disagree."""

    lost: float
    points: float
    what: str
    reference: str
    candidate: str

    @property
    def agreement(self) -> float:
        return _agreement(self.lost, self.points)


class Tally:
    """Sums and the worst samples; no sample is kept whole."""

    def __init__(self) -> None:
        self.deviations = Deviations()
        self.scores: list[tuple[float, float]] = []  # fp32's, the candidate's
        self.samples = self.equal = 0
        self.lost = self.points = 0.0
        self.lowest = 1.0
        self._by_picture: dict[str, tuple[float, float]] = {}
        self._worst: list[tuple[float, float, Worst]] = []  # agreement, -lost

    def outputs(self, picture: str, reference: Arrays, candidate: Arrays) -> None:
        """Tensors of one execution, by name."""
        if found := self.deviations.add(reference, candidate):
            count = sum(found.values())
            what = f"not finite in {', '.join(sorted(found))}: {count}"
            self._name(-1.0, count, picture, what, "", "")

    def answer(self, picture: str, compared: Compared) -> None:
        self.samples += 1
        self.equal += compared.lost == 0
        self.lost += compared.lost
        self.points += compared.points
        self.lowest = min(self.lowest, compared.agreement)
        lost, points = self._by_picture.get(picture, (0.0, 0.0))
        self._by_picture[picture] = lost + compared.lost, points + compared.points
        if compared.lost > EQUAL:
            texts = (picture, compared.what, compared.reference, compared.candidate)
            self._name(compared.agreement, compared.lost, *texts)

    @property
    def agreement(self) -> float:
        """Over all points, 1 where there are none."""
        return _agreement(self.lost, self.points)

    def verification(
        self, *, agreement: float, measure: str, unit: str, details: Mapping[str, float], max_drop: float
    ) -> Verification:
        errors = self.deviations.by_tensor
        return Verification(
            samples=self.samples,
            unit=unit,
            measure=measure,
            agreement=agreement,
            drop=round(1 - agreement, 9),  # 1 - 0.99 is more than 0.01
            max_drop=max_drop,
            errors=errors,
            not_finite=sum(error.not_finite for error in errors.values()),
            details=details,
            worst=tuple(worst for *_, worst in self._worst),
        )

    @property
    def plots(self) -> Plots:
        shares = sorted(_agreement(lost, points) for lost, points in self._by_picture.values())
        return Plots(
            histograms=self.deviations.histograms,
            scores=np.array(self.scores, np.float32).reshape(-1, 2),
            agreements=np.array(shares, np.float32),
        )

    def _name(self, agreement: float, lost: float, *texts: str) -> None:
        entry = (agreement, -lost, Worst(*map(printable, texts)))
        self._worst = heapq.nsmallest(WORST, [*self._worst, entry], key=lambda entry: entry[:2])


def printable(text: str) -> str:
    """Without characters that would move the cursor or break a line."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _agreement(lost: float, points: float) -> float:
    return max(0.0, 1 - lost / max(1.0, points))
