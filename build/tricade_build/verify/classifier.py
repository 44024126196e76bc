"""A classifier's answers to the same crops, in fp32 and as it is served."""

from __future__ import annotations

from collections.abc import Sequence

from tricade.stage import Arrays

from .answers import KINDS, Reading
from .plots import Plots
from .tally import Tally
from .verification import Verification


class ClassifierComparison:
    """`names`: one for each INDEX, none for an embedding; `threshold`: the classifier's own."""

    def __init__(self, *, head: str, names: Sequence[str] = (), threshold: float = 0.0) -> None:
        self._kind = KINDS[head]
        self._reading = Reading(names, threshold)
        self._tally = Tally()

    def add(self, picture: str, reference: Arrays, candidate: Arrays) -> None:
        """Both networks' outputs for the same n crops of a picture, as often as it has crops."""
        self._tally.outputs(picture, reference, candidate)
        for answer in self._kind.compare(reference, candidate, self._reading):
            self._tally.answer(picture, answer.compared)
            if answer.scores:
                self._tally.scores.append(answer.scores)

    def done(self, *, max_drop: float) -> tuple[Verification, Plots]:
        tally = self._tally
        equal = {"equal": tally.equal / max(1, tally.samples)}
        verification = tally.verification(
            agreement=tally.agreement,
            measure=self._kind.measure,
            unit="crops",
            details=equal if self._kind.exact else {"lowest": tally.lowest},
            max_drop=max_drop,
        )
        return verification, tally.plots
