"""Version folders of a model, `<model>/1`, `<model>/2`, …: Triton serves the highest."""

from __future__ import annotations

import re
from pathlib import Path

_NUMBER = re.compile(r"[1-9][0-9]*")


def is_version(name: str) -> bool:
    """Whether a folder of this name is one."""
    return _NUMBER.fullmatch(name) is not None


def versions(model: Path) -> tuple[int, ...]:
    """Ascending; nothing where the model has no folder."""
    if not model.is_dir():
        return ()
    return tuple(sorted(int(path.name) for path in model.iterdir() if is_version(path.name) and path.is_dir()))


def latest(model: Path) -> int:
    """The highest; 0 where there is none."""
    return max(versions(model), default=0)


def latest_folder(model: Path) -> Path:
    """That of the highest; one that is not there where there is none."""
    return model / str(latest(model))
