"""The live tests against engines: `python tests/gpu/live.py OUT [--build-only] [--without-text] [pytest's arguments]`.

Needs what `build_text.py` needs, $TRITON, and pytest, hypothesis, scikit-image and rapidocr. Builds all pipelines of
`tests/live` into OUT/repository with target `tensorrt`, or the one of $TRICADE_TEST_TARGET, networks at the same time,
and runs the tests on it as they are. What is built already stays. The text pipeline's engines take most of the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gpu.uninstalled import ROOT, importable, place_triton

TARGET = os.environ.setdefault("TRICADE_TEST_TARGET", "tensorrt")
# Of no engine: a demo of its own build, and ONNX Runtime in a server that is not `tricade serve`.
OTHERS = ["test_demo.py", "test_plugin.py"]
TEXT = "text"


def main(arguments: list[str]) -> int:
    """Exit code: pytest's, or 3 where an engine could not be built."""
    out = Path(arguments[0]).resolve()
    repository = out / "repository"
    os.environ.setdefault("TRICADE_CACHE", str(out / "cache"))
    os.environ["TRICADE_TEST_REPOSITORY"] = str(repository)
    importable()
    place_triton()
    os.chdir(ROOT)
    mine = [name for name in ("--build-only", "--without-text") if name in arguments]
    without = [TEXT] if "--without-text" in mine else []
    if not _build(out, repository, without):
        return 3
    if "--build-only" in mine:
        return 0
    others = [*OTHERS, f"test_{TEXT}.py"] if without else OTHERS
    ignored = [f"--ignore=tests/live/{name}" for name in others]
    further = [argument for argument in arguments[1:] if argument not in mine]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/live", *ignored, *further]
    return subprocess.run(command, check=False).returncode


def _build(out: Path, repository: Path, without: list[str]) -> bool:
    import live_pipelines
    from gpu.ahead import Coming, compile_ahead

    from tricade_build.build import build

    pipelines = live_pipelines.write(out / "pipelines", without=without)
    builds = [Coming(pipeline, repository) for pipeline in pipelines]
    began_s = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began_s:7.1f} s  {line}", flush=True)  # noqa: T201

    def quiet(about: str) -> Callable[..., None]:
        return lambda *_: None

    done = True
    for made in compile_ahead(builds, target=TARGET, reference=out / "reference", report=quiet):
        say(f"{made.network}: {made.error or f'{made.seconds:.1f} s'}")
        done = done and not made.error
    if done:
        for pipeline in pipelines:
            built = build(pipeline, repository=repository, target=TARGET)
            say(f"{pipeline.name}: built {', '.join(built.built) or 'nothing'}")
    return done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
