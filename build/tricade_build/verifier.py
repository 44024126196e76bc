"""A thread in which networks are verified, while the next one is made."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from typing_extensions import Self

from .errors import VerificationError
from .made import Made, Work
from .networks import Job
from .verified import verified
from .weights import Report, Weights


class Halted(BaseException):
    """The build has ended; nobody waits for what is still running."""


class Halting:
    """A report through which everything that goes on tells its progress, and hears of the end."""

    def __init__(self, report: Report) -> None:
        self._report, self._ended = report, threading.Event()

    def __call__(self, what: str, share: float | None = None, /) -> None:
        if self._ended.is_set():
            raise Halted
        self._report(what, share)

    def end(self) -> None:
        self._ended.set()


class Verifier:
    """One network at a time: each uses all cores."""

    def __init__(self, halting: Halting) -> None:
        self._halting = halting
        self._pool = ThreadPoolExecutor(1)
        self._verifying: dict[str, Future[Weights]] = {}

    def __enter__(self) -> Self:
        return self

    def start(self, job: Job, made: Mapping[str, Made], names: Sequence[str], work: Work) -> None:
        self._verifying[job.name] = self._pool.submit(verified, job, made, names, work)

    def weights(self) -> dict[str, Weights]:
        """Of all networks, by their names; raises one `VerificationError` for all that are not good enough."""
        weights: dict[str, Weights] = {}
        failures: list[str] = []
        for name, verifying in self._verifying.items():
            try:
                weights[name] = verifying.result()
            except VerificationError as error:
                failures.append(str(error))
        if failures:
            raise VerificationError("\n".join(failures))
        return weights

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._halting.end()
        self._pool.shutdown(cancel_futures=True)
