"""The processes in which Python models run: who is there, and who has died."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from .errors import LoadFailed
from .loading import Say
from .process import TritonProcess

STUB = "triton_python_backend_stub"
MOST_DEATHS, WITHIN_S = 5, 60.0
ENDING_S = 10.0


class StubWatch:
    """Notices when the server or one of its stubs has died, and has the stub's model loaded again by `reload`."""

    def __init__(self, triton: TritonProcess, reload: Callable[[str], None], say: Say) -> None:
        self._triton, self._reload, self._say = triton, reload, say
        self._known = stubs_of(triton.process.pid)  # what runs now is what should
        self._deaths: dict[str, deque[float]] = {}

    def check(self) -> None:
        """Reload the models that lost a process; raises `LoadFailed` for a dead server, or a model that dies
        again and again."""
        for model in self.hurt():
            self._note_death(model)
            self._say(f"{model}: a process of it has died; it is loaded again")
            try:
                self._reload(model)
            except LoadFailed:
                self._triton.check_alive(within_s=ENDING_S)  # a server that ends loses its stubs first
                raise
            self._known = stubs_of(self._triton.process.pid)

    def hurt(self) -> list[str]:
        """The models that have lost a process; raises `LoadFailed` for a dead server."""
        self._triton.check_alive()
        running = stubs_of(self._triton.process.pid)
        return sorted({model for pid, model in self._known.items() if pid not in running})

    def _note_death(self, model: str) -> None:
        deaths = self._deaths.setdefault(model, deque(maxlen=MOST_DEATHS))
        deaths.append(time.monotonic())
        if len(deaths) == MOST_DEATHS and deaths[-1] - deaths[0] < WITHIN_S:
            raise LoadFailed(f"{model} has died {MOST_DEATHS} times within {WITHIN_S:.0f} s; its log above says why")


def stubs_of(server: int) -> dict[int, str]:
    """The living stubs of a server: process id and model."""
    children: list[str] = []
    for task in Path(f"/proc/{server}/task").glob("*/children"):
        try:
            children += task.read_text().split()
        except OSError:  # the thread has ended
            continue
    found = {int(pid): _model_of(int(pid)) for pid in children}
    return {pid: model for pid, model in found.items() if model}


def _model_of(pid: int) -> str:
    """The model a stub runs; empty for other processes and for dead ones, which have no command line."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    if len(command) < 2 or Path(command[0].decode()).name != STUB:
        return ""
    return Path(command[1].decode()).parents[1].name  # …/<model>/<version>/model.py
