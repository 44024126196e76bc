"""A network's files as they are published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .manifest import GRAPH, MANIFEST, Record, records_from, records_text
from .shapes import Shapes


class Report(Protocol):
    """Hears what is being worked on, and the share that is done where that is known, 0 to 1."""

    def __call__(self, what: str, share: float | None = None, /) -> None: ...


def unheard(what: str, share: float | None = None, /) -> None:
    """The report that nobody hears."""


@dataclass(frozen=True)
class Weights:
    """All files of the network's version folder by name; a path is a file of the latest version, kept as it is.

    `built`: whether they differ from that version at all.
    """

    records: Mapping[str, Record]  # of the network's own files
    contents: Mapping[str, bytes | Path]
    built: bool

    @property
    def shapes(self) -> Shapes:
        return self.records[GRAPH].shapes


def weights_from(contents: Mapping[str, bytes | Path], records: Mapping[str, Record], *, latest: Path) -> Weights:
    """With their manifest, beside the latest version's folder; hidden files in there do not count."""
    same = records_from(latest / MANIFEST) == records
    whole = {**contents, MANIFEST: latest / MANIFEST if same else records_text(records).encode()}
    present = {path.name for path in latest.glob("[!.]*")}
    same = present == whole.keys() and all(_is(latest / name, content) for name, content in whole.items())
    return Weights(records, whole, built=not same)


def _is(file: Path, content: bytes | Path) -> bool:
    return file == content if isinstance(content, Path) else file.read_bytes() == content
