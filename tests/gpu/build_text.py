"""Build the text pipeline's engines with target `tensorrt` on a GPU host: `python build_text.py OUT [options]`.

Needs TensorRT, a CUDA device, and tricade's own requirements for building; tricade need not be installed. The networks
of all precisions are compiled at the same time, each in a process of its own; then each precision is built as
`tricade build` does, which finds what was compiled and holds it to fp32. Below OUT: `fp32/`, `fp16/`, `int8/`, each a
repository; `plans/` with plans, manifests and reports alone; `found.json` with times, versions, agreement with fp32 and
what did not hold (`problems`, empty when all is well). A second run with the same OUT keeps what it finds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gpu.uninstalled import ROOT, importable

TARGET = "tensorrt"
PRECISIONS = ("fp32", "fp16", "int8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pipeline", type=Path, default=ROOT / "pipelines" / "text.yaml")
    parser.add_argument("--level", type=int, help="builder_optimization_level, 0 to 5")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument(
        "--pages", type=int, default=40, help="drawn to calibrate with, half as many to verify on; 0: fp32 only"
    )
    parser.add_argument("--max-drop", type=float, default=0.01)
    asked = parser.parse_args(arguments)
    out = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TRICADE_CACHE", str(out / "cache"))
    with tempfile.TemporaryDirectory() as folder:
        pipeline = _pipeline(asked, Path(folder))
        found = _found(pipeline, asked.precisions.split(","), out)
    (out / "found.json").write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))  # noqa: T201
    return 1 if found["problems"] else 0


def _pipeline(asked: argparse.Namespace, folder: Path) -> Path:
    """A copy of the pipeline file with pictures and this optimization level; models are found from the root."""
    import pages

    os.chdir(ROOT)
    sections = []
    if asked.pages:
        pages.write(folder / "calibration", count=asked.pages)
        pages.write(folder / "verification", count=max(8, asked.pages // 2), first=asked.pages)
        sections.append("calibration: {images: calibration}")
        sections.append(f"verification: {{images: verification, max_drop: {asked.max_drop}}}")
    if asked.level is not None:
        sections.append(f"builder: {{optimization_level: {asked.level}}}")
    copy = folder / asked.pipeline.name
    copy.write_text("\n".join([asked.pipeline.resolve().read_text(), *sections, ""]))
    return copy


def _found(pipeline: Path, precisions: list[str], out: Path) -> dict[str, Any]:
    from tricade.gpu import gpus
    from tricade_build.plans import package_of

    began_s = time.monotonic()
    problems = list(_compiled(pipeline, precisions, out, began_s))
    compiled_s = time.monotonic() - began_s
    built = {precision: _built(pipeline, precision, out, problems, began_s) for precision in precisions}
    gpu = gpus()[0]
    return {
        "tensorrt": package_of(TARGET).__version__,
        "gpu": [gpu.name, gpu.capability],
        "compile_s": round(compiled_s, 1),
        "built": built,
        "problems": problems,
    }


def _compiled(pipeline: Path, precisions: list[str], out: Path, began_s: float) -> Iterator[str]:
    """Compile every network of every precision; yields problems."""
    from gpu.ahead import Coming, compile_ahead

    builds = [Coming(pipeline, out / precision, precision) for precision in precisions]
    report = partial(_report, began_s=began_s)
    for made in compile_ahead(builds, target=TARGET, reference=out / "reference", report=report):
        about = f"{made.repository.name}: {made.network}"
        print(f"{time.monotonic() - began_s:7.1f} s  {about} took {made.seconds:.1f} s", flush=True)  # noqa: T201
        if made.error:
            yield f"{about}: {made.error}"


def _built(pipeline: Path, precision: str, out: Path, problems: list[str], began_s: float) -> dict[str, Any]:
    from tricade_build.build import build
    from tricade_build.errors import BuildError

    times = []
    for _ in range(2):
        start_s = time.monotonic()
        try:
            done = build(
                pipeline,
                repository=out / precision,
                target=TARGET,
                precision=precision,
                report=_report(precision, began_s),
            )
        except BuildError as error:
            problems.append(f"{precision}: {error}")
            return {"error": str(error)}
        times.append(round(time.monotonic() - start_s, 1))
    if done.built:
        problems.append(f"{precision}: {', '.join(done.built)} was built twice: its key changed meanwhile")
    engines = dict(_engines(out / precision, out / "plans" / precision, problems))
    agreement = {name: [found.agreement, dict(found.details)] for name, found in done.verified.items()}
    return {"build_s": times, "agreement": agreement, "unverified": dict(done.unverified), "engines": engines}


def _engines(repository: Path, plans: Path, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """Each plan's record; plans, manifests and reports are copied to where they can be carried away from."""
    from tricade.gpu import gpus
    from tricade.manifest import Here, manifest_from, misfit, sha256_of
    from tricade_build.plans import package_of

    for file in sorted(repository.glob("*/*/model.plan")):
        manifest = manifest_from(file.parent)
        here = Here({TARGET: package_of(TARGET).__version__}, gpus()[0].capability, sha256_of(file))
        if why := misfit(manifest, here):
            problems.append(f"{file}: {why}")
        model = file.parents[1].name
        (plans / model).mkdir(parents=True, exist_ok=True)
        for each in file.parent.iterdir():
            if each.suffix in (".plan", ".json", ".html"):
                shutil.copy2(each, plans / model / each.name)
        yield model, {**manifest["model.plan"]["engine"], "bytes": file.stat().st_size}


def _report(precision: str, began_s: float) -> Any:
    last = [0.0]

    def report(what: str, share: float | None = None, /) -> None:
        now_s = time.monotonic()
        if share is None or now_s - last[0] > 10:
            last[0] = now_s
            shown = "" if share is None else f"  {share:.0%}"
            print(f"{now_s - began_s:7.1f} s  {precision}: {what}{shown}", flush=True)  # noqa: T201

    return report


if __name__ == "__main__":
    importable()
    sys.exit(main(sys.argv[1:]))
