"""Build the text pipeline's engines with target `tensorrt` on a GPU host: `python build_text.py OUT [--level N]`.

Needs TensorRT, a CUDA device, and tricade's own requirements for building: onnx, onnxruntime, pydantic, pyyaml,
numpy, tritonclient with protobuf. tricade need not be installed. The networks compile at the same time, each in a
process of its own. Below OUT: `repository/` as `tricade build` leaves it, `plans/` with each network's plan and
manifest alone, `found.json` with times, versions and what did not hold (`problems`, empty when all is well).
A second run with the same OUT keeps what it finds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / folder for folder in ("backends", "build", "client")]
TARGET = "tensorrt"


@dataclass(frozen=True)
class Times:
    """Seconds."""

    fold: float
    compile_: dict[str, float]
    again: float


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pipeline", type=Path, default=ROOT / "pipelines" / "text.yaml")
    parser.add_argument("--level", type=int, help="builder_optimization_level, 0 to 5")
    asked = parser.parse_args(arguments)
    out = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TRICADE_CACHE", str(out / "cache"))
    with tempfile.TemporaryDirectory() as folder:
        pipeline = _pipeline(asked.pipeline.resolve(), asked.level, Path(folder))
        found = _build(pipeline, out)
    (out / "found.json").write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))  # noqa: T201
    return 1 if found["problems"] else 0


def importable() -> None:
    """Make tricade's packages importable here and in the processes that compile, and its version known."""
    info = Path(tempfile.mkdtemp()) / "tricade-0.dist-info"
    info.mkdir()
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tricade\nVersion: {version.group(1)}\n")
    paths = [*map(str, SOURCES), str(info.parent)]
    # Behind the packages that are installed: `backends/tensorrt` is a folder of ours.
    sys.path += paths
    os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), *paths])


def _pipeline(file: Path, level: int | None, folder: Path) -> Path:
    """The pipeline file, or a copy that asks for this optimization level; models are found from the root."""
    os.chdir(ROOT)
    if level is None:
        return file
    copy = folder / file.name
    copy.write_text(file.read_text() + f"\nbuilder: {{optimization_level: {level}}}\n")
    return copy


def _build(pipeline: Path, out: Path) -> dict[str, Any]:
    from tricade.gpu import gpus
    from tricade.manifest import Here, manifest_from, misfit, sha256_of
    from tricade_build.build import build
    from tricade_build.plans import package_of
    from tricade_build.settle import settled
    from tricade_build.spec_file import pipeline_from_file
    from tricade_build.targets import TARGETS

    spec = settled(pipeline, pipeline_from_file(pipeline))
    TARGETS[TARGET].check(spec)
    repository, plans = out / "repository", out / "plans"
    began_s = time.monotonic()
    if not list(repository.rglob("*.plan")):
        build(pipeline, repository=repository)  # folds; the networks' folders are ours from now on
    folded_s = time.monotonic()
    names = ("detector", *spec.classifiers)
    with ThreadPoolExecutor(len(names)) as pool:
        compiled = dict(zip(names, pool.map(lambda name: _compile(spec, name, repository), names), strict=True))
    again_s = time.monotonic()
    done = build(pipeline, repository=repository, target=TARGET)
    times = Times(folded_s - began_s, compiled, time.monotonic() - again_s)

    problems = [f"{model} was compiled twice: its key changed from one build to the next" for model in done.built]
    gpu, version = gpus()[0], package_of(TARGET).__version__
    engines = {}
    for name in names:
        version_folder = repository / f"{spec.name}_{name}" / "1"
        manifest = manifest_from(version_folder)
        here = Here({TARGET: version}, gpu.capability, sha256_of(version_folder / "model.plan"))
        if why := misfit(manifest, here):
            problems.append(f"{name}: {why}")
        engines[name] = manifest["model.plan"]["engine"]
        copies = plans / f"{spec.name}_{name}"
        copies.mkdir(parents=True, exist_ok=True)
        for file in ("model.plan", "manifest.json"):
            shutil.copy2(version_folder / file, copies / file)
    return {
        "tensorrt": version,
        "gpu": [gpu.name, gpu.capability],
        "fold_s": round(times.fold, 1),
        "compile_s": {name: round(seconds, 1) for name, seconds in times.compile_.items()},
        "build_again_s": round(times.again, 1),
        "plan_bytes": {path.parent.name: path.stat().st_size for path in sorted(plans.glob("*/model.plan"))},
        "engines": engines,
        "problems": problems,
    }


def _compile(spec: Any, name: str, repository: Path) -> float:
    """One network's plan, graph and manifest into the repository; the seconds that took."""
    from tricade_build.networks import job_of
    from tricade_build.targets import TARGETS

    def report(what: str, share: float | None = None, /) -> None:
        print(f"{time.monotonic() - began_s:7.1f} s  {what}" + ("" if share is None else f"  {share:.0%}"), flush=True)  # noqa: T201

    began_s = time.monotonic()
    job = job_of(spec, name)
    weights = TARGETS[TARGET].weights(job, repository / job.model, report)
    for path, data in weights.files.items():
        (repository / job.model / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / job.model / path).write_bytes(data)
    return time.monotonic() - began_s


if __name__ == "__main__":
    importable()
    sys.exit(main(sys.argv[1:]))
