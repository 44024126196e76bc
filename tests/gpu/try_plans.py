"""Compiles small plans with real TensorRT, runs them, serves them with real Triton: `try_plans.py OUT [STEP ...]`.

Needs `$TRITON`, the folder of a Triton without a native TensorRT backend, and a GPU. Each step runs in a process of
its own, prints one line of JSON and leaves the same in OUT/STEP.json; plans found in OUT/plans are not compiled
again. The last line, and OUT/found.json, hold all of them and `problems`, which is empty when all is well.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
run_path(str(ROOT / "backends" / "tricade" / "load.py"))  # as the backends find it: never `backends` on the path

ALL_S, STEP_S = 570, 200
DRIVER = "libcuda.so.1"
# TensorRT checks a plan's header and length, not its contents.
EXPECTED = "damaged: middle bytes changed"


def steps(out: Path, work: Path) -> dict[str, Callable[[], Any]]:
    """In the order in which they are worth their time."""
    from gpu import in_process, switches

    plans = out / "plans"
    return {
        "compiled": lambda: compile_all(plans),
        "classifier": lambda: in_process.try_classifier(plans / "classifier"),
        "two_profiles": lambda: in_process.try_two_profiles(plans / "sum_and_order"),
        "answers": lambda: switches.try_answers(plans / "deep"),
        "unshared": lambda: switches.try_unshared(plans / "deep_unshared"),
        "gpu_arrays": lambda: switches.try_gpu_arrays(plans / "deep"),
        "times": lambda: switches.try_times(plans / "deep"),
        "costs": lambda: switches.try_costs(plans / "deep"),
        "any_order": lambda: switches.try_any_order(plans / "deep"),
        "misfits": lambda: in_process.try_misfits(plans),
        "damaged": lambda: in_process.try_damaged(plans / "classifier" / "1" / "model.plan", work),
        "reloading": lambda: in_process.try_reloading(plans / "classifier"),
        "served_switches": lambda: serve("served_switches", plans, work, out),
        "served": lambda: serve("served", plans, work, out),
    }


def main(out: Path, wanted: list[str]) -> int:
    out.mkdir(parents=True, exist_ok=True)
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [link(out), os.environ.get("LD_LIBRARY_PATH")]))
    found: dict[str, Any] = {}
    end_s = time.monotonic() + ALL_S
    for name in wanted or steps(out, out):
        limit_s = min(STEP_S, end_s - time.monotonic())
        found[name] = elsewhere(out, name, limit_s) if limit_s > 5 else "NOT RUN: too late"
        line = json.dumps({name: found[name]})
        print(line, flush=True)  # noqa: T201
        (out / f"{name}.json").write_text(line + "\n")
    problems = [where for where in wrong(found) if where != EXPECTED]
    (out / "found.json").write_text(json.dumps(found | {"problems": problems}, indent=1) + "\n")
    print(json.dumps({"problems": problems}), flush=True)  # noqa: T201
    return bool(problems)


def link(out: Path) -> str:
    """A folder where the driver has the short name by which Triton's Python stub opens it, if it has it nowhere."""
    try:
        ctypes.CDLL("libcuda.so")
    except OSError:
        try:
            ctypes.CDLL(DRIVER)
        except OSError:  # no driver at all: every step will say so
            return ""
        mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcuda.so" in line]
        folder = out.resolve() / "lib"
        folder.mkdir(exist_ok=True)
        (folder / "libcuda.so").unlink(missing_ok=True)
        (folder / "libcuda.so").symlink_to(mapped[0])
        return str(folder)
    return ""


def elsewhere(out: Path, name: str, limit_s: float) -> Any:
    """What a step finds in a process of its own, which may die or hang without harm to the others."""
    command = [sys.executable, __file__, "--step", name, str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        told, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return f"NOT RUN to its end within {limit_s:.0f} s"
    lines = told.splitlines() or [""]
    return json.loads(lines[-1]) if process.returncode == 0 else f"PROCESS DIED: {process.returncode}, {lines[-1]}"


def step(name: str, out: Path) -> None:
    """One step here; its findings, or how it failed, on the last line."""
    start = time.monotonic()
    with TemporaryDirectory() as work:
        try:
            found = steps(out, Path(work))[name]()
        except (Exception, SystemExit):
            found = traceback.format_exc()
    print(json.dumps({"found": found, "s": round(time.monotonic() - start, 1)}), flush=True)  # noqa: T201


def wrong(found: Any, where: str = "") -> Iterator[str]:
    """Places where the findings say that something is wrong."""
    if isinstance(found, dict):
        for name, value in found.items():
            inside = name in ("found", "s") or not where
            yield from wrong(value, (where or name) if inside else f"{where}: {name}")
    elif isinstance(found, (list, tuple)):
        for value in found:
            yield from wrong(value, where)
    elif (found is False and not where.endswith("maps libcuda")) or (
        isinstance(found, str) and any(words in found for words in ("NOT R", "PROCESS DIED", "Traceback", "goes on w"))
    ):
        yield where


def compile_all(plans: Path) -> dict[str, float]:
    from gpu.graphs import RECIPES

    missing = [name for name in RECIPES if not (plans / name / "1" / "model.plan").is_file()]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return dict(zip(missing, pool.map(_compiled, missing, [plans] * len(missing)), strict=True))


def _compiled(name: str, plans: Path) -> float:
    from gpu.graphs import compile_plan

    folder, start = plans / name / "1", time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    compile_plan(name, folder / "model.plan")
    return round(time.monotonic() - start, 1)


def serve(name: str, plans: Path, work: Path, out: Path) -> dict[str, Any]:
    from gpu import served, served_switches

    repository = work / "model_repository"
    served.write_repository(plans, repository)
    served_switches.write_repository(plans / "deep" / "1", repository)
    try:
        with served.server(repository, work) as client:
            return {"served": served, "served_switches": served_switches}[name].try_served(client)
    finally:
        (out / f"{name}.log").write_bytes((work / "server.log").read_bytes()[-200_000:])


if __name__ == "__main__":
    if sys.argv[1] == "--step":
        step(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
