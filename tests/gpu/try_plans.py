"""Compiles small plans with real TensorRT, runs them, serves them with real Triton: `try_plans.py OUTPUT_DIR`.

Needs `$TRITON`, the folder of a Triton without a native TensorRT backend, and a GPU. Plans found in
OUTPUT_DIR/plans are not compiled again. Writes what it found to OUTPUT_DIR/found.json.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
run_path(str(ROOT / "backends" / "tricade" / "load.py"))  # as the backends find it: never `backends` on the path


def main(out: Path) -> None:
    from gpu import in_process

    plans, found = out / "plans", {}
    with TemporaryDirectory() as work:
        steps: dict[str, Callable[[], Any]] = {
            "compiled, s": lambda: compile_all(plans),
            "classifier": lambda: in_process.try_classifier(plans / "classifier"),
            "two profiles": lambda: in_process.try_two_profiles(plans / "sum_and_order"),
            "misfits": lambda: in_process.try_misfits(plans),
            "damaged": lambda: in_process.try_damaged(plans / "classifier" / "1" / "model.plan", Path(work)),
            "reloading": lambda: in_process.try_reloading(plans / "classifier"),
            "served": lambda: serve(plans, Path(work) / "served", out),
        }
        for name, step in steps.items():
            start = time.monotonic()
            found[name] = _tried(step)
            print(json.dumps({name: found[name], "s": round(time.monotonic() - start, 1)}, indent=1), flush=True)  # noqa: T201
    (out / "found.json").write_text(json.dumps(found, indent=1))


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


def serve(plans: Path, work: Path, out: Path) -> dict[str, Any]:
    from gpu import served

    repository = work / "model_repository"
    served.write_repository(plans, repository)
    try:
        with served.server(repository, work) as client:
            return served.try_served(client)
    finally:
        (out / "server.log").write_bytes((work / "server.log").read_bytes()[-200_000:])


def _tried(step: Callable[[], Any]) -> Any:
    """Its findings, or how it failed: the other steps are worth their time all the same."""
    try:
        return step()
    except (Exception, SystemExit):
        return traceback.format_exc()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
