"""Processes that do one job after the other: a GPU's context or a caller's interpreter for each."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

_PR_SET_PDEATHSIG = 1
_SPAWN = multiprocessing.get_context("spawn")  # a fork of this process would share its threads' locks

Job = tuple[Callable[..., Any], dict[str, Any]]  # a module's function and its keywords


class JobFailed(Exception):
    """What a job raised, or that its process ended or took too long."""


class Child:
    """A process; `end` it."""

    def __init__(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, job: Job) -> None:
        """Begin it."""
        try:
            self._pipe.send(job)
        except OSError as error:
            raise JobFailed(f"the process ended with exit code {self._process.exitcode}") from error

    def answer(self, within_s: float) -> Any:
        """What the job returned; raises `JobFailed`."""
        if not self._pipe.poll(within_s):
            self.end()
            raise JobFailed(f"no answer within {within_s:.0f} s")
        try:
            result, error = self._pipe.recv()
        except EOFError as ended:
            self._process.join(1)
            raise JobFailed(f"the process ended with exit code {self._process.exitcode}") from ended
        if error:
            raise JobFailed(error)
        return result

    def end(self) -> None:
        """Whatever it does."""
        self._pipe.close()
        self._process.kill()
        self._process.join(5)


@contextmanager
def children(count: int) -> Iterator[list[Child]]:
    """So many, ended on the way out."""
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(Child())
            stack.callback(made[-1].end)
        yield made


def together(some: Sequence[Child], jobs: Sequence[Job], *, within_s: float) -> list[Any]:
    """A job for each, all at once."""
    for child, job in zip(some, jobs, strict=True):
        child.ask(job)
    return [child.answer(within_s) for child in some]


def _work(pipe: Connection) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    while True:
        try:
            function, given = pipe.recv()
        except EOFError:
            return
        try:
            result, error = function(**given), ""
        except Exception as caught:
            result, error = None, f"{type(caught).__name__}: {caught}"
        pipe.send((result, error))
