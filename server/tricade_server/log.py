"""The server's log on its way to ours: what matters passes, and what it says about its end is noticed."""

from __future__ import annotations

import sys
import threading
from typing import IO

# Seen from Triton 2.51, most of it on machines without a GPU: true, harmless, and alarming to read.
HARMLESS = (
    "Unable to allocate pinned system memory",
    "failed to allocate pinned system memory",
    "CudaDriverHelper has not been initialized",
    "Failed to initialize NVML",
    "DCGM unable to start",
    "unable to create stream for",
    "Signal (15) received.",  # ours, when it is to stop
)
# Its words when no call is in flight any more and only unloading remains.
DRAINED = "All models are stopped, unloading models"


class ServerLog(threading.Thread):
    """Copies warnings and errors to standard error until the log ends; everything when `verbose`."""

    def __init__(self, log: IO[bytes], *, verbose: bool) -> None:
        super().__init__(name="triton-log", daemon=True)
        self.drained = threading.Event()  # also set when the log ends
        self._log, self._verbose = log, verbose

    def run(self) -> None:
        for line in self._log:
            text = line.decode(errors="replace")
            if DRAINED in text:
                self.drained.set()
            if self._verbose or not _is_noise(text):
                sys.stderr.write(text)
                sys.stderr.flush()
        self.drained.set()


def _is_noise(text: str) -> bool:
    """Information (`I1130 04:34:09.848478 …`), tables, and what is harmless."""
    information = text.startswith("I") and text[1:5].isdigit()
    return information or text.startswith(("+", "|", "\n")) or any(phrase in text for phrase in HARMLESS)
