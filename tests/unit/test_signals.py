"""The first signal raises, further ones do nothing; afterwards all is as it was."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tricade_server.signals import SIGNALS, interruptible

BENCH = """
import signal
from bench.processes import SIGNALS, interrupt_on_signals

interrupt_on_signals()
try:
    signal.raise_signal({number})
except KeyboardInterrupt:
    for each in SIGNALS:
        signal.raise_signal(each)
    print("ended")
"""


def signalled(first: signal.Signals, *further: signal.Signals) -> None:
    with interruptible():
        try:
            signal.raise_signal(first)
        finally:
            for each in further:
                signal.raise_signal(each)


@pytest.mark.parametrize("first", SIGNALS)
def test_only_the_first_raises(first: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]

    with pytest.raises(KeyboardInterrupt):
        signalled(first, *SIGNALS)

    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_without_a_signal_the_handlers_come_back() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]

    with interruptible():
        assert all(signal.getsignal(each) not in before for each in SIGNALS)

    assert [signal.getsignal(each) for each in SIGNALS] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_bench_heeds_a_terminal_that_goes_too(number: signal.Signals) -> None:
    """In a process of its own, for nothing puts these handlers back."""
    code = BENCH.format(number=int(number))

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "ended\n"
