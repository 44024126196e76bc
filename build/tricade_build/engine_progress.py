"""TensorRT's nested phases of compiling as one share of the whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Hear = Callable[[str, float], None]  # the innermost phase, the share that is done: 0 to 1


@dataclass
class _Phase:
    parent: str
    steps: int
    done: int = 0


class Phases:
    """Told by TensorRT from any of its threads; `share` never falls."""

    def __init__(self) -> None:
        self._open: dict[str, _Phase] = {}
        self._lock = threading.Lock()
        self.share = 0.0

    def start(self, name: str, parent: str | None, steps: int) -> None:
        with self._lock:
            self._open[name] = _Phase(parent or "", max(1, steps))

    def step(self, name: str, step: int) -> float:
        """The share of the outermost phase, now that this step of `name` is done."""
        with self._lock:
            if name in self._open:
                self._open[name].done = min(step + 1, self._open[name].steps)
            self.share = max(self.share, self._share(""))
            return self.share

    def finish(self, name: str) -> None:
        with self._lock:
            self._open.pop(name, None)

    def _share(self, parent: str) -> float:
        """Of the furthest phase below `parent`; a phase that runs fills one step of its parent."""
        shares = [
            min(1.0, (phase.done + self._share(name)) / phase.steps)
            for name, phase in self._open.items()
            if phase.parent == parent and name != parent
        ]
        return max(shares, default=0.0)


def monitor_of(trt: Any, hear: Hear) -> Any:
    """TensorRT's progress monitor, None where it has no such thing (before 10)."""
    if not hasattr(trt, "IProgressMonitor"):
        return None

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.phases = Phases()

        def phase_start(self, name: str, parent: str | None, steps: int) -> None:
            self.phases.start(name, parent, steps)

        def step_complete(self, name: str, step: int) -> bool:
            hear(name, self.phases.step(name, step))
            return True

        def phase_finish(self, name: str) -> None:
            self.phases.finish(name)

    return Monitor()
