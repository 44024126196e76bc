"""The server's log on its way to ours, without what a machine without a GPU makes it say at every start."""

from __future__ import annotations

import sys
import threading
from typing import IO

# Seen from Triton 2.51 on machines without a GPU: true, harmless, and alarming to read.
HARMLESS = (
    "Unable to allocate pinned system memory",
    "failed to allocate pinned system memory",
    "CudaDriverHelper has not been initialized",
    "Failed to initialize NVML",
    "DCGM unable to start",
    "unable to create stream for",
)


def pass_on(log: IO[bytes], *, verbose: bool) -> threading.Thread:
    """Copy `log` to standard error, line by line, until it ends; `verbose` leaves nothing out."""

    def copy() -> None:
        for line in log:
            text = line.decode(errors="replace")
            if verbose or not any(phrase in text for phrase in HARMLESS):
                sys.stderr.write(text)
                sys.stderr.flush()

    thread = threading.Thread(target=copy, name="triton-log", daemon=True)
    thread.start()
    return thread
