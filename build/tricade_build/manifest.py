"""The record beside a network's weights: what each file was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from .shapes import Shapes

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Record:
    """One file: equal keys mean equal contents."""

    key: str
    source: str  # the ONNX file's name
    source_sha256: str
    sha256: str
    shapes: Shapes
    tricade: str = Field(default_factory=lambda: version("tricade"))


_RECORDS = TypeAdapter(dict[str, Record])


def records_from(path: Path) -> dict[str, Record]:
    """By file name; nothing where there is no manifest, or one that another version wrote."""
    try:
        return _RECORDS.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return {}


def records_text(records: Mapping[str, Record]) -> str:
    return _RECORDS.dump_json(dict(records), indent=2).decode() + "\n"


def sha256_of(data: bytes | Path) -> str:
    """Of a file that is not there: ""."""
    if isinstance(data, Path):
        if not data.is_file():
            return ""
        data = data.read_bytes()
    return hashlib.sha256(data).hexdigest()
