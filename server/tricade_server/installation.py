"""Which Triton there is: NVIDIA's image has one in `/opt/tritonserver`, elsewhere the wheel `nvidia-pytriton`."""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .errors import NoTriton

IMAGE = Path("/opt/tritonserver")


@dataclass(frozen=True)
class Installation:
    """`backends` holds the native ones; `stub` is for the running Python, None where `backends` has its own."""

    binary: Path
    backends: Path
    stub: Path | None
    libraries: tuple[Path, ...]

    @property
    def name(self) -> str:
        return "NVIDIA's image" if self.stub is None else "the nvidia-pytriton wheel"


def find_triton(image: Path = IMAGE) -> Installation:
    """NVIDIA's image first, then the wheel; raises `NoTriton`, saying what is missing."""
    if (image / "bin" / "tritonserver").is_file():
        return Installation(image / "bin" / "tritonserver", image / "backends", None, ())
    return _from_wheel()


def _from_wheel() -> Installation:
    found = find_spec("pytriton")
    if found is None or found.origin is None:
        raise NoTriton(
            "there is no Triton server: expected /opt/tritonserver (NVIDIA's image) or the wheel nvidia-pytriton "
            "(Linux on x86_64); run: pip install nvidia-pytriton==0.7.0"
        )
    package = Path(found.origin).parent
    root = package / "tritonserver"
    stub = root / "python_backend_stubs" / _version() / "triton_python_backend_stub"
    if not stub.is_file():
        there = ", ".join(sorted(path.name for path in (root / "python_backend_stubs").iterdir()))
        raise NoTriton(f"the server wheel has no Python stub for {_version()}, only for {there}; use one of these")
    libraries = (_libpython(), package.parent / "nvidia_pytriton.libs")
    return Installation(root / "bin" / "tritonserver", root / "backends", stub, libraries)


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _libpython() -> Path:
    """The folder of libpython, which the stub is linked against."""
    name = f"libpython{_version()}.so.1.0"
    folders = [sysconfig.get_config_var("LIBDIR"), "/usr/lib/x86_64-linux-gnu", "/usr/local/lib", "/usr/lib"]
    for folder in folders:
        if folder and (Path(folder) / name).is_file():
            return Path(folder)
    raise NoTriton(
        f"this Python has no shared library: the server's stub needs {name}; install libpython{_version()} or "
        "another Python (pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared)"
    )
