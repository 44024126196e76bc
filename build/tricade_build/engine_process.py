"""Compiling in a process of its own: TensorRT can neither be interrupted nor trusted not to take its process down."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import tricade

from .engine import Compiled, Recipe
from .engine_timings import Timings
from .engine_worker import ANSWER, GRAPH, ORDER
from .errors import EngineError
from .weights import Report

WORDS_TOLD = 300  # characters of what a process said before it died


@dataclass(frozen=True)
class Kit:
    """An installed package that compiles: its name as it is imported, as a target, and its version."""

    package: str
    target: str
    version: str


def compiled_from(graph: bytes, recipe: Recipe, kit: Kit, *, timings: Timings, report: Report) -> Compiled:
    """Raises `EngineError`; Ctrl-C ends the compiling at once."""
    recipe.check()
    with tempfile.TemporaryDirectory(prefix="tricade-") as folder, tempfile.TemporaryFile() as said:
        work = Path(folder)
        (work / GRAPH).write_bytes(graph)
        (work / ORDER).write_bytes(pickle.dumps((recipe, timings)))
        report(f"compiling {recipe.model} with {kit.target} {kit.version}")
        code = _run([sys.executable, "-m", "tricade_build.engine_worker", folder, kit.package], said, recipe, report)
        if not (work / ANSWER).is_file():
            said.seek(0)
            raise EngineError(_died(recipe, kit, code, said.read().decode(errors="replace")))
        answer = pickle.loads((work / ANSWER).read_bytes())  # our own child wrote it
    if isinstance(answer, EngineError):
        raise answer
    assert isinstance(answer, Compiled)
    return answer


def _run(command: list[str], said: IO[bytes], recipe: Recipe, report: Report) -> int:
    """Until it ends; in a session of its own, so that Ctrl-C reaches this process only."""
    roots = {str(Path(module).resolve().parents[1]) for module in (__file__, tricade.__file__)}
    path = os.pathsep.join([*sorted(roots), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            share, _, phase = line.partition(" ")
            report(f"compiling {recipe.model}: {phase.strip()}", float(share))
        return process.wait()
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _died(recipe: Recipe, kit: Kit, code: int, said: str) -> str:
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    words = " ".join(said.split())[-WORDS_TOLD:] or "nothing"
    return (
        f"expected a plan for {recipe.model}; {kit.target} {kit.version} {how} while compiling, saying: {words}; "
        "see that memory suffices, or build with --target onnxruntime"
    )
