"""Servers of others: each in a session of its own, ended whole and by process id."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tricade_server.signals import interrupt_on

STOP_S, ALONE_S, KILL_S = 15.0, 2.0, 5.0  # for a server to end, for those without it, for the kernel to end them
SHARED_MEMORY = "/dev/shm"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


class ServerFailed(Exception):
    """A server ended by itself, or was not ready in time; the message holds the end of its log."""


def interrupt_on_signals() -> None:
    """The first of `SIGNALS` raises KeyboardInterrupt, so that what runs is ended; further ones do not disturb that."""
    interrupt_on(*SIGNALS)


@contextmanager
def running(
    command: Sequence[str], *, environment: Mapping[str, str], log: Path, ready: Callable[[], bool], timeout_s: float
) -> Iterator[None]:
    """A server from the moment it is ready; on the way out it and all it started are gone. Raises `ServerFailed`."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    try:
        _wait_until(ready, process, log, timeout_s)
        yield
    finally:
        _stop(process)


def _wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while not ready():
        said = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        if process.poll() is not None:
            raise ServerFailed(f"{process.args!r} ended with exit code {process.returncode}:\n{said}")
        if time.monotonic() > end:
            raise ServerFailed(f"{process.args!r} was not ready within {timeout_s:.0f} s:\n{said}")
        time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the server, which may know how to end its own; then to those it has left; then SIGKILL. Shared memory
    that they forgot is removed."""
    members = _members(process.pid)  # one that leaves the session later is still known
    shared = {file for pid in members for file in _shared_memory(pid)}
    _signal({process.pid} & members, signal.SIGTERM)
    _wait_for_end(process, members, STOP_S, alone_s=ALONE_S)
    _signal(members | _members(process.pid), signal.SIGTERM)
    _wait_for_end(process, members, ALONE_S)
    _signal(members | _members(process.pid), signal.SIGKILL)
    _wait_for_end(process, members, KILL_S)
    for file in shared:
        file.unlink(missing_ok=True)


def _signal(members: set[int], number: signal.Signals) -> None:
    for pid in sorted(members):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait_for_end(
    process: subprocess.Popen[bytes], members: set[int], within_s: float, *, alone_s: float = math.inf
) -> None:
    """Until all have ended; without the server itself no longer than `alone_s`."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if process.poll() is not None:
            end, alone_s = min(end, time.monotonic() + alone_s), math.inf
        members.intersection_update(_alive())
        if not members | _members(process.pid):
            return
        time.sleep(0.05)


def _members(session: int) -> set[int]:
    """The living processes of a session, and those descended from it."""
    table = _alive()
    found = {pid for pid, (_, of) in table.items() if of == session}
    while more := {pid for pid, (parent, _) in table.items() if parent in found} - found:
        found |= more
    return found


def _alive() -> dict[int, tuple[int, int]]:
    """Parent and session of every process that is not just waiting to be reaped (proc(5))."""
    table = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, _, session = stat.read_text().rsplit(")", 1)[1].split()[:4]
        except OSError:  # it has ended
            continue
        if state != "Z":
            table[int(stat.parent.name)] = int(parent), int(session)
    return table


def _shared_memory(pid: int) -> set[Path]:
    """The files of `/dev/shm` that a process has mapped (proc(5): the path is the sixth field)."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:  # it has ended
        return set()
    paths = (line.split(maxsplit=5)[5] for line in lines if f" {SHARED_MEMORY}/" in line)
    return {Path(path) for path in paths if not path.endswith(" (deleted)")}


def _end_with_parent() -> None:
    """A server must not outlive a bench that was killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
