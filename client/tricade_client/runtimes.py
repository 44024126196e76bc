"""Where calls run: in threads, driven without an event loop, or as tasks of asyncio's."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")
Call = Callable[[], Coroutine[Any, Any, T]]


class Runtime(Protocol):
    """Starts calls and waits for them; `abandon` leaves none behind that nobody waits for."""

    async def work(self, function: Callable[[], T]) -> T:
        """Run what takes the processor or the disk."""

    def start(self, call: Call[T]) -> Any:
        """Begin a call, for `finished`."""

    async def finished(self, started: Any) -> Any:
        """What a call returns or raises."""

    async def abandon(self, started: Iterable[Any]) -> None:
        """Cancel these, and start no more."""


class Threads:
    """For a blocking transport. Requests already sent end by themselves, at their deadline at the latest."""

    def __init__(self, in_flight: int) -> None:
        self._in_flight = in_flight
        self._pool: ThreadPoolExecutor | None = None  # most calls are one request, which needs none

    async def work(self, function: Callable[[], T]) -> T:
        return function()

    def start(self, call: Call[T]) -> Future[T]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._in_flight, thread_name_prefix="tricade")
        return self._pool.submit(lambda: finished(call()))

    async def finished(self, started: Future[T]) -> T:
        return started.result()

    async def abandon(self, started: Iterable[Future[Any]]) -> None:  # noqa: ARG002 - the pool knows them
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


class Tasks:
    """For an asyncio transport; cancelling a task cancels its request on the server too."""

    async def work(self, function: Callable[[], T]) -> T:
        return await asyncio.to_thread(function)

    def start(self, call: Call[T]) -> asyncio.Task[T]:
        return asyncio.create_task(call())

    async def finished(self, started: asyncio.Task[T]) -> T:
        return await started

    async def abandon(self, started: Iterable[asyncio.Task[Any]]) -> None:
        tasks = list(started)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_order(
    items: AsyncIterable[Item], call: Callable[[Item], Coroutine[Any, Any, T]], runtime: Runtime, *, in_flight: int
) -> AsyncGenerator[T, None]:
    """The calls' answers in the order of their items, at most `in_flight` at once; items are read as needed."""
    waiting: deque[Any] = deque()
    try:
        async for item in items:
            waiting.append(runtime.start(lambda item=item: call(item)))  # type: ignore[misc]
            if len(waiting) >= in_flight:
                yield await runtime.finished(waiting[0])
                waiting.popleft()
        while waiting:
            yield await runtime.finished(waiting[0])
            waiting.popleft()
    finally:
        await runtime.abandon(waiting)


def finished(call: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that never suspends, as those over a blocking transport."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("a call over a blocking transport suspended")


def iterated(answers: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """An asynchronous generator that never suspends, as a plain one; closing one closes the other."""
    end = object()
    try:
        while (answer := finished(_next(answers, end))) is not end:
            yield answer  # type: ignore[misc]
    finally:
        finished(_closed(answers))


async def _closed(answers: AsyncGenerator[T, None]) -> None:
    await answers.aclose()


async def _next(answers: AsyncIterator[T], end: object) -> T | object:
    return await anext(answers, end)


async def each(items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Item]:
    """Both kinds of iterable as the asynchronous one."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
