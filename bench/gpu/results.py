"""What was measured so far: a line of JSON each as it comes, and all of it in a file; and the time that is left."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ENDING_S = 25.0  # for a server to drain and end
DIGITS = 4


class TimeUp(BaseException):
    """The cap is near: whatever runs must be ended."""


class Results:
    """Figures by `what` and the parameters they hold for; `began` and the cap are seconds of this process."""

    def __init__(self, file: Path, *, cap_s: float) -> None:
        self._file, self._rows = file, list[dict[str, Any]]()
        self._began_s, self._lock = time.monotonic(), threading.Lock()
        self._end_s = self._began_s + cap_s - ENDING_S

    def add(self, what: str, **figures: Any) -> None:
        """Print and keep."""
        row = {"what": what, "at_s": time.monotonic() - self._began_s, **figures}
        with self._lock:
            self._rows.append(_rounded(row))
            print(json.dumps(self._rows[-1], ensure_ascii=False), flush=True)  # noqa: T201
            self._file.parent.mkdir(parents=True, exist_ok=True)
            beside = self._file.with_suffix(".part")
            beside.write_text(json.dumps(self._rows, ensure_ascii=False, indent=1), encoding="utf-8")
            beside.replace(self._file)

    def found(self, what: str, **parameters: Any) -> dict[str, Any] | None:
        """The last figures of that name and these parameters; None where it was not measured."""
        rows = [row for row in self._rows if row["what"] == what and not {"error", "skipped"} & row.keys()]
        return next((row for row in reversed(rows) if parameters.items() <= row.items()), None)

    def say(self, line: str) -> None:
        """What goes on, kept nowhere."""
        sys.stderr.write(f"{time.monotonic() - self._began_s:7.1f} s  {line}\n")
        sys.stderr.flush()

    def measure(self, what: str, needs_s: float, measurement: Callable[[], dict[str, Any]], **parameters: Any) -> Any:
        """Do it where the time is enough, and add what came of it; its figures, or None."""
        left_s = self._end_s - time.monotonic()
        if left_s < needs_s:
            self.add(what, **parameters, skipped=f"{needs_s:.0f} s are needed, {left_s:.0f} s are left")
            return None
        try:
            figures = measurement()
        except Exception as error:  # the others are measured all the same
            traceback.print_exc()
            self.add(what, **parameters, error=f"{type(error).__name__}: {error}")
            return None
        self.add(what, **parameters, **figures)
        return figures

    def end_in_time(self) -> None:
        """Have the main thread raise `TimeUp` when the time is up, and the process end where that took too long."""

        def up(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
            signal.signal(signal.SIGALRM, _leave)
            signal.setitimer(signal.ITIMER_REAL, ENDING_S)
            raise TimeUp

        signal.signal(signal.SIGALRM, up)
        signal.setitimer(signal.ITIMER_REAL, max(0.1, self._end_s - time.monotonic()))


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Servers and children end with this process."""
    sys.stderr.write("bench: could not end everything in time\n")
    os._exit(3)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value
