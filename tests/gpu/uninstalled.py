"""tricade from its sources, on a host where nothing can be installed."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / folder for folder in ("backends", "build", "client", "server", "tune", "cli", "tests")]


def importable() -> None:
    """Make tricade's packages importable, here and in all processes that are started, and its version known."""
    info = Path(tempfile.mkdtemp()) / "tricade-0.dist-info"
    info.mkdir()
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tricade\nVersion: {version.group(1)}\n")
    paths = [*map(str, SOURCES), str(info.parent)]
    # Behind the packages that are installed: `backends/tensorrt` is a folder of ours.
    sys.path += paths
    os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), *paths])


def place_triton() -> None:
    """Where $TRITON is a server's folder and the machine has none in the image's place, link it there, with the stub
    of this Python."""
    from tricade_server.installation import IMAGE

    home = os.environ.get("TRITON")
    if not home or (os.path.lexists(IMAGE) and not (IMAGE.exists() and IMAGE.samefile(home))):
        return
    stub = "triton_python_backend_stub"
    there = Path(home) / "python_backend_stubs" / f"{sys.version_info.major}.{sys.version_info.minor}" / stub
    shutil.copy(there, Path(home) / "backends" / "python" / stub)
    if not IMAGE.exists():
        IMAGE.parent.mkdir(parents=True, exist_ok=True)
        IMAGE.symlink_to(home)
