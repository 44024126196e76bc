"""What making a network needs, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tricade.versions import latest_folder

from .evidence import Evidence
from .manifest import MANIFEST, Record, records_from, sha256_of
from .unpublished import Unpublished
from .weights import Report


@dataclass(frozen=True)
class Made:
    """One file of a network, and the record of it; a path is a file of the latest version, kept as it is."""

    record: Record
    data: bytes | Path

    def read(self) -> bytes:
        return self.data.read_bytes() if isinstance(self.data, Path) else self.data


@dataclass(frozen=True)
class Work:
    """Where a network goes, and what helps in making it."""

    folder: Path  # the model's in the repository
    evidence: Evidence
    unpublished: Unpublished
    report: Report

    @property
    def latest(self) -> Path:
        """The folder of the latest version, if there is one."""
        return latest_folder(self.folder)

    def found(self, name: str, key: str) -> Made | None:
        """A file that was made from the same, in the latest version or by a build that did not publish it."""
        file, record = self.latest / name, self.records.get(name)
        if record and record.key == key and record.sha256 == sha256_of(file):
            return Made(record, file)
        kept = self.unpublished.get(key)
        return kept and Made(*kept)

    def keep(self, made: Made) -> None:
        """For the next build, should this one not come to its end."""
        self.unpublished.put(made.record, made.read())

    @property
    def records(self) -> Mapping[str, Record]:
        """Of the latest version's files."""
        return records_from(self.latest / MANIFEST)
