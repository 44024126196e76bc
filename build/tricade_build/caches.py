"""The user's cache folder, and writing into it beside others."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

CACHE = "TRICADE_CACHE"  # the environment variable that names another folder


def cache_folder() -> Path:
    return Path(os.environ.get(CACHE) or Path.home() / ".cache" / "tricade")


def replace(file: Path, data: bytes) -> None:
    """Whoever reads the file meanwhile has the old or the new, whole."""
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".new-", delete=False) as new:
        new.write(data)
    Path(new.name).replace(file)
