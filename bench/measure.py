"""One table's worth of rounds: who answers right is measured, in turns, under every load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from .answers import answer_from
from .contestants import TRICADE, comparison_of, contestant_from
from .load import Call, Round, Way, closed_loop, in_turns, open_loop
from .peers.pipeline import Pipeline, Place
from .processes import ServerFailed
from .workloads import Workload

WARM_UP_S = 0.3
ARRIVALS = 5
Say = Callable[[str], None]


@dataclass(frozen=True)
class Load:
    """So many callers that wait for their answers, or so many arrivals a second that wait for nobody."""

    callers: int = 0
    rate: float = 0.0

    def __str__(self) -> str:
        return f"{self.callers} callers" if self.callers > 1 else "1 caller" if self.callers else f"{self.rate:.3g} /s"

    def rounds(self, pictures: Sequence[bytes], *, rounds: int, seconds: float) -> list[Way]:
        """Arrivals differ from round to round and are the same for everybody; a round is long enough for some."""
        if self.callers:
            return [closed_loop(pictures, callers=self.callers, seconds=seconds)] * rounds
        seconds = max(seconds, ARRIVALS / self.rate)
        return [open_loop(pictures, rate=self.rate, seconds=seconds, seed=seed) for seed in range(rounds)]


@dataclass(frozen=True)
class Cell:
    """A workload under a load: the rounds of each contestant."""

    workload: Workload
    load: Load
    rounds: Mapping[str, Sequence[Round]]


@dataclass(frozen=True)
class Plan:
    """What is to be measured; `shares` are open-loop rates in parts of what tricade gave its most callers."""

    contestants: Sequence[str]
    callers: Sequence[int]
    shares: Sequence[float]
    rounds: int
    seconds: float


class Measuring:
    """One pipeline's contestants, all running at the same time; `refused` says who was not measured where, and why."""

    def __init__(self, plan: Plan, place: Place, *, url: str, say: Say) -> None:
        self._plan, self._place, self._url, self._say = plan, place, url, say
        self._calls: dict[str, Call] = {}
        self._stack = ExitStack()
        self.refused: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Measuring:
        self._right = Pipeline(self._place)
        try:
            for name in self._plan.contestants:
                self._start(name)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def cells(self, workload: Workload) -> Iterator[Cell]:
        """Every load in turn, on those who answer right."""
        calls = {name: call for name, call in self._calls.items() if self._answers_right(name, call, workload)}
        if not calls:
            return
        self._say(f"{workload.name}: warming up")
        in_turns(calls, [closed_loop(workload.pictures, callers=self._place.workers, seconds=WARM_UP_S)])
        most: Sequence[Round] = ()
        for callers in self._plan.callers:
            cell = self._cell(workload, Load(callers=callers), calls)
            most = cell.rounds.get(TRICADE, ())
            yield cell
        rate = float(np.median([each.rate for each in most])) if most else 0.0
        for share in self._plan.shares if rate else ():
            yield self._cell(workload, Load(rate=share * rate), calls)

    def _start(self, name: str) -> None:
        self._say(f"{self._place.pipeline}: starting {name}")
        try:
            self._calls[name] = self._stack.enter_context(contestant_from(name, url=self._url, place=self._place))
        except ServerFailed as error:
            self.refused[name, "*"] = f"did not start: {error}"

    def _answers_right(self, name: str, call: Call, workload: Workload) -> bool:
        self._say(f"{workload.name}: looking at what {name} answers")
        compare = comparison_of(name)
        try:
            differences = [
                compare(call(picture), answer_from(self._right.outputs(picture))) for picture in workload.pictures
            ]
        except Exception as error:  # whatever a contestant raises is its failure to answer
            differences = [f"{type(error).__name__}: {error}"]
        if why := next(filter(None, differences), ""):
            self.refused[name, workload.name] = f"answers otherwise: {why}"
        return not why

    def _cell(self, workload: Workload, load: Load, calls: Mapping[str, Call]) -> Cell:
        self._say(f"{workload.name}: {load}")
        ways = load.rounds(workload.pictures, rounds=self._plan.rounds, seconds=self._plan.seconds)
        return Cell(workload, load, in_turns(calls, ways))
