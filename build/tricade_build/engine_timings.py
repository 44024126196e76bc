"""What TensorRT measured while it compiled, kept for the next time: one file for each GPU and TensorRT version."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .caches import cache_folder, replace


def timings_for(*, gpu: str, version: str) -> Timings:
    """Below the user's cache folder."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{gpu}-{version}").strip("-")
    return Timings(cache_folder() / "timings" / f"{name}.cache")


@dataclass(frozen=True)
class Timings:
    """A timing cache in a file; without a file nothing is kept."""

    file: Path | None = None

    @contextmanager
    def used_by(self, config: Any) -> Iterator[None]:
        """Set before compiling, written after it; one that TensorRT does not take counts as none."""
        if self.file is None or not hasattr(config, "create_timing_cache"):
            yield
            return
        if not _set(config, self._read()):
            _set(config, b"")
        yield
        if measured := config.get_timing_cache():
            self._add(config, measured)

    def _read(self) -> bytes:
        assert self.file is not None
        return self.file.read_bytes() if self.file.is_file() else b""

    def _add(self, config: Any, measured: Any) -> None:
        """Together with what others have written meanwhile; a folder that cannot be written costs time only."""
        assert self.file is not None
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with (self.file.parent / ".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                theirs = config.create_timing_cache(self._read())
                if theirs is None or not theirs.combine(measured, False):
                    theirs = measured
                replace(self.file, bytes(theirs.serialize()))
        except OSError:
            return


def _set(config: Any, data: bytes) -> bool:
    cache = config.create_timing_cache(data)
    return cache is not None and bool(config.set_timing_cache(cache, False))
