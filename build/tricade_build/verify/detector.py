"""A detector's answers to the same pictures, in fp32 and as it is served."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tricade.stage import Arrays

from .average_precision import average_precision
from .boxes import Found, matches
from .plots import Plots
from .tally import Compared, Tally
from .verification import Verification

MEASURE = "mAP at IoU 0.5"


class DetectorComparison:
    """fp32's detections from `threshold` on are what is expected.

    Those below, where they are given, excuse: a detection that is one of them is neither right nor wrong, so that
    a score which moves a little across the threshold costs nothing.
    """

    def __init__(self, *, threshold: float, names: Sequence[str] = ()) -> None:
        self.threshold, self.names = threshold, names
        self._tally = Tally()
        self._ranked: dict[int, list[tuple[NDArray[np.float32], NDArray[np.bool_]]]] = defaultdict(list)
        self._expected: Counter[int] = Counter()
        self._missed = self._added = 0

    def add(self, picture: str, *, errors_of: tuple[Arrays, Arrays], reference: Found, candidate: Found) -> None:
        """One picture: fp32's and the candidate's tensors, and the detections of both down to a lower threshold."""
        self._tally.outputs(picture, *errors_of)
        expected, served = reference.scores >= self.threshold, candidate.scores >= self.threshold
        match = matches(reference, candidate, counts=expected)
        hits = match >= 0
        hits[hits] = expected[match[hits]]
        self._rank(candidate, hits, hits | (match < 0))
        self._expected.update(reference.classes[expected].tolist())
        self._tally.scores += zip(reference.scores[match[match >= 0]], candidate.scores[match >= 0], strict=True)
        missed, added = expected.copy(), served & ~hits
        missed[match[hits & served]] = False
        self._missed += int(missed.sum())
        self._added += int(added.sum())
        self._tally.answer(picture, self._compared(reference, candidate, missed, added))

    def done(self, *, max_drop: float) -> tuple[Verification, Plots]:
        details = {
            "f1": self._tally.agreement,
            "expected": self._expected.total(),
            "missed": self._missed,
            "added": self._added,
        }
        verification = self._tally.verification(
            agreement=self._mean_average_precision(),
            measure=MEASURE,
            unit="pictures",
            details=details,
            max_drop=max_drop,
        )
        return verification, self._tally.plots

    def _rank(self, candidate: Found, hits: NDArray[np.bool_], ranked: NDArray[np.bool_]) -> None:
        for index in np.unique(candidate.classes[ranked]):
            here = ranked & (candidate.classes == index)
            self._ranked[int(index)].append((candidate.scores[here], hits[here]))

    def _compared(
        self, reference: Found, candidate: Found, missed: NDArray[np.bool_], added: NDArray[np.bool_]
    ) -> Compared:
        """As points of F1, 2·hits / (2·hits + missed + added)."""
        lost = int(missed.sum() + added.sum())
        both = int((reference.scores >= self.threshold).sum() + (candidate.scores >= self.threshold).sum())
        return Compared(
            lost=lost,
            points=both,
            what=f"{missed.sum()} missed, {added.sum()} added",
            reference=reference.text(missed, self.names),
            candidate=candidate.text(added, self.names),
        )

    def _mean_average_precision(self) -> float:
        """Over the classes that occur, 1 where none does.

        A class that only the candidate finds counts 0, where COCO leaves it out: no network may invent one.
        """
        shares = []
        for index in self._expected.keys() | self._ranked.keys():
            parts = self._ranked.get(index, [])
            scores = np.concatenate([scores for scores, _ in parts] or [np.empty(0, np.float32)])
            hits = np.concatenate([hits for _, hits in parts] or [np.empty(0, bool)])
            if self._expected[index] or (scores >= self.threshold).any():
                shares.append(average_precision(scores, hits, expected=self._expected[index]))
        return float(np.mean(shares)) if shares else 1.0
