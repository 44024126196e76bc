"""The machine: what Triton's processes take of its processors, how busy the GPU is."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tricade_server.stubs import stubs_of

SERVER = "tritonserver"
TICKS = os.sysconf("SC_CLK_TCK")
SAMPLED_EVERY_S = 0.1


def processes() -> dict[int, str]:
    """Of the server that this process started: its own and its stubs', by the model they run."""
    found: dict[int, str] = {}
    for task in Path("/proc/self/task").glob("*/children"):
        for pid in map(int, task.read_text().split()):
            with suppress(OSError):  # it has ended
                if Path(f"/proc/{pid}/comm").read_text().strip() == SERVER:
                    found |= {pid: SERVER, **stubs_of(pid)}
    return found


def cpu_s(pid: int) -> float:
    """Processor seconds of a process so far (proc(5): utime and stime); 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def idle_s() -> float:
    """Seconds all processors of the machine have been idle so far (proc(5): the fourth and fifth number of `cpu`)."""
    numbers = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return (int(numbers[3]) + int(numbers[4])) / TICKS


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
