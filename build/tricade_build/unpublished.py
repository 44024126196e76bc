"""What took long to make and has not been published yet: a build that fails later, or is killed, finds it again.

One pair of files for each key, below the user's cache folder: the data, and their record.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .caches import cache_folder, replace
from .manifest import Record, records_from, records_text, sha256_of


class Unpublished:
    """A folder that cannot be read or written costs time only."""

    def __init__(self) -> None:
        self._folder = cache_folder() / "unpublished"

    def put(self, record: Record, data: bytes) -> None:
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            replace(self._data(record.key), data)
            replace(self._record(record.key), records_text({record.key: record}).encode())

    def get(self, key: str) -> tuple[Record, bytes] | None:
        """None where both are not there whole."""
        record = records_from(self._record(key)).get(key)
        with suppress(OSError):
            data = self._data(key).read_bytes()
            if record and record.sha256 == sha256_of(data):
                return record, data
        return None

    def drop(self, keys: Iterable[str]) -> None:
        """What has been published lies in the repository."""
        with suppress(OSError):
            for key in keys:
                self._record(key).unlink(missing_ok=True)
                self._data(key).unlink(missing_ok=True)

    def _data(self, key: str) -> Path:
        return self._folder / f"{key}.data"

    def _record(self, key: str) -> Path:
        return self._folder / f"{key}.json"
