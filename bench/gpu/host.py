"""How busy the GPU is."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SAMPLED_EVERY_S = 0.1


@contextmanager
def gpu_watched() -> Iterator[list[int]]:
    """The percent of the time in which the GPU ran something, sampled meanwhile; none where nothing can tell."""
    samples: list[int] = []
    done = threading.Event()
    thread = threading.Thread(target=_sample, args=(samples, done), daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join(5)


class _Utilization(ctypes.Structure):
    """nvml.h: nvmlUtilization_t."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


def _sample(samples: list[int], done: threading.Event) -> None:
    try:
        library: Any = ctypes.CDLL("libnvidia-ml.so.1")
        device, found = ctypes.c_void_p(), _Utilization()
        if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
            return
    except (OSError, AttributeError):  # no driver, or one that is too old
        return
    time.sleep(SAMPLED_EVERY_S)
    while not done.is_set():
        if library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(found)) == 0:
            samples.append(found.gpu)
        done.wait(SAMPLED_EVERY_S)
