"""The machine: what Triton's processes take of its processors, and ports that are free."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

from tricade_server.stubs import stubs_of

SERVER = "tritonserver"
TICKS = os.sysconf("SC_CLK_TCK")


def processes() -> dict[int, str]:
    """Of the server that this process started: its own and its stubs', by the model they run."""
    found: dict[int, str] = {}
    children: list[str] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            children += task.read_text().split()
    for pid in map(int, children):
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


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
