"""The process that compiles one plan: `python -m tricade_build.engine_worker FOLDER PACKAGE`.

It reads `graph.onnx` and `order.pickle` out of the folder, writes `answer.pickle`, tells its progress on standard
output as `share phase` a line, and ends with whoever holds its standard input open.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

from .engine import Compiled, Recipe, compile_plan
from .engine_progress import monitor_of
from .engine_timings import Timings
from .errors import EngineError

GRAPH, ORDER, ANSWER = "graph.onnx", "order.pickle", "answer.pickle"
INTERVAL_S = 0.2  # between two lines of progress

Answer = Compiled | EngineError


def main(folder: Path, package: str) -> None:
    """An error of TensorRT's own, whatever its class, is an answer too."""
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    lines = os.dup(1)
    os.dup2(2, 1)  # libraries that print do not get between the lines of progress
    recipe, timings = pickle.loads((folder / ORDER).read_bytes())  # our own parent wrote it
    answer: Answer
    try:
        answer = _compiled(folder, package, recipe, timings, _Teller(lines))
    except EngineError as error:
        answer = error
    except Exception as error:
        answer = EngineError(f"{package} fails to compile {recipe.model}: {type(error).__name__}: {error}")
    (folder / ANSWER).write_bytes(pickle.dumps(answer))


def _compiled(folder: Path, package: str, recipe: Recipe, timings: Timings, teller: _Teller) -> Compiled:
    trt = import_module(package)
    monitor = monitor_of(trt, teller.tell)
    return compile_plan(trt, (folder / GRAPH).read_bytes(), recipe, timings=timings, monitor=monitor)


class _Teller:
    """Lines to a file descriptor, not too many."""

    def __init__(self, lines: int) -> None:
        self._lines, self._last_s = lines, 0.0

    def tell(self, phase: str, share: float) -> None:
        now_s = time.monotonic()
        if now_s - self._last_s >= INTERVAL_S:
            self._last_s = now_s
            os.write(self._lines, f"{share:.4f} {phase}\n".encode())


def _end_with_parent(folder: Path) -> None:
    """A build that was killed cannot clean up behind itself."""
    while os.read(0, 1):  # not sys.stdin, whose lock would be held when this process ends by itself
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
