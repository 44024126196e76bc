"""A fake plan with the manifest by which contexts may share its profiles, as `tricade build` leaves them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import loading
from .manifests import record


def loader(monkeypatch: Any, folder: Path) -> Iterator[loading.Loader]:
    """For a fixture: `loading.loader`, the plan recorded."""
    for load in loading.loader(monkeypatch, folder):
        file = folder / "1" / "model.plan"
        record(file, file.read_bytes())
        yield load
