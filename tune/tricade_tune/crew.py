"""Threads that stay: what a client keeps for a thread, a connection say, is there again in the next round."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Tasks = SimpleQueue[tuple[Callable[[], Any], "Future[Any]"]]


class Crew:
    """As many as are at work at once; the one that was idle last takes the next task, so that few serve light load."""

    def __init__(self) -> None:
        self._idle: list[_Tasks] = []
        self._lock = threading.Lock()

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Begin it at once."""
        future: Future[T] = Future()
        with self._lock:
            tasks = self._idle.pop() if self._idle else self._joined()
        tasks.put((task, future))
        return future

    def _joined(self) -> _Tasks:
        tasks: _Tasks = SimpleQueue()
        threading.Thread(target=self._work, args=(tasks,), name="caller", daemon=True).start()
        return tasks

    def _work(self, tasks: _Tasks) -> None:
        while True:
            task, future = tasks.get()
            try:
                result, error = task(), None
            except BaseException as caught:
                result, error = None, caught
            with self._lock:
                self._idle.append(tasks)  # before anybody hears of the end, and may need it
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
