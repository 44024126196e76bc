"""The record beside a network's weights: what each file was made from, and for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from tricade.manifest import MANIFEST, PLAN

from .shapes import Shapes
from .verify import Verification

__all__ = [
    "GRAPH", "MANIFEST", "PLAN", "Engine", "Record", "Verified", "records_from", "records_text", "sha256_of",
]  # fmt: skip

GRAPH = "model.onnx"


@dataclass(frozen=True)
class Engine:
    """What a plan was compiled with and for; `tricade.manifest` reads some of it where plans are served."""

    target: str
    version: str  # of that target's package
    capabilities: tuple[str, ...]  # compute capabilities that it runs on, e.g. 8.9
    gpu: str  # the name of the one it was compiled on; "" where it needed none
    onnx_sha256: str  # the graph that was compiled
    precisions: Mapping[str, int]  # as found: layers that carry the work and compute in each
    profile: Mapping[str, tuple[tuple[int, ...], ...]]  # smallest, likeliest, largest shape of each input
    flags: tuple[str, ...]
    optimization_level: int
    workspace_bytes: int | None
    build_s: float


@dataclass(frozen=True)
class Verified:
    """How a file compares with the graph in fp32; equal keys mean that nothing would be found anew."""

    key: str
    found: Verification


@dataclass(frozen=True)
class Record:
    """One file: equal keys mean equal contents, or for a plan equal ingredients."""

    key: str
    source: str  # the ONNX file's name
    source_sha256: str
    sha256: str
    shapes: Shapes
    precision: str  # as the pipeline file asks for
    engine: Engine | None = None  # plans have one
    verification: Verified | None = None
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
