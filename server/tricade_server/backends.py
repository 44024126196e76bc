"""The backend directory Triton is given: its own backends, and ours where it has none of that name.

Triton refuses a library that a link leads out of its backend's folder, so files are copied; where the
filesystem allows it that is a hard link.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tricade

from .installation import Installation

OURS = Path(tricade.__file__).resolve().parents[1]
PREFIX = "tricade-"
NATIVE = ("python", "tensorrt", "onnxruntime")  # what a pipeline may need of Triton's own


def backend_directory(installation: Installation, into: Path, *, ours: Path = OURS) -> Path:
    """Triton's own directory where an image has our backends in it already, else one made at `into`."""
    names = [path.name for path in sorted(ours.iterdir()) if path.is_dir() and path.name != "__pycache__"]
    if all((installation.backends / name).is_dir() for name in names):
        return installation.backends
    into.mkdir(parents=True)
    for name in NATIVE:
        if (installation.backends / name).is_dir():
            _copy(installation.backends / name, into / name)
    for name in names:
        if not (into / name).exists():
            _copy(ours / name, into / name)
    if installation.stub is not None:
        _copy_file(installation.stub, into / "python" / installation.stub.name)
    return into


@contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder for this process; those of killed ones are removed first."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as made:
        yield Path(made)


def _copy(source: Path, target: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, target, ignore=ignore, copy_function=_copy_file)


def _copy_file(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
