"""A signal ends what runs, and what it started with it: the first raises, further ones do not disturb the ending."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def interrupt_on(*numbers: signal.Signals) -> dict[signal.Signals, Any]:
    """The first of them raises KeyboardInterrupt, and then none does anything; returns what handled them before."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    return {each: signal.signal(each, interrupt) for each in numbers}


@contextmanager
def interruptible() -> Iterator[None]:
    """So with `SIGNALS`, until the way out."""
    before = interrupt_on(*SIGNALS)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
