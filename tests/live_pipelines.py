"""The pipelines that live tests are served, and the target that they are built for.

`TRICADE_TEST_TARGET` names another target than onnxruntime; `TRICADE_TEST_REPOSITORY` is then a folder where they have
been built for it, which `gpu/live.py` does.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import cascade

from tricade_build.models import fetch

ROOT = Path(__file__).resolve().parents[1]
TARGET = os.environ.get("TRICADE_TEST_TARGET", "onnxruntime")
BUILT = os.environ.get("TRICADE_TEST_REPOSITORY")
# Compilers of engines take many times as long for the last few percent of speed.
KEYS: dict[str, Any] = {} if TARGET == "onnxruntime" else {"builder": {"optimization_level": 1}}


def write(folder: Path, *, without: Collection[str] = ()) -> list[Path]:
    """`squares` (whose classifier waits for company), `mixed` (with three more classifiers), `tiled` (with tiles, and
    two instances of a network) and `text`; the pipeline files."""
    every = {"squares": write_squares, "mixed": _mixed, "tiled": _tiled, "text": _text}
    return [make(folder / name) for name, make in every.items() if name not in without]


def write_squares(folder: Path, **keys: Any) -> Path:
    """The fixture cascade; `keys` as for `cascade.write`."""
    return cascade.write(folder, **{**KEYS, "colour": {"max_delay_us": 2000}, **keys})


def _mixed(folder: Path) -> Path:
    classifiers = {
        "warmth": cascade.colour_section(classes=["warm"], top_k=2, max_batch=4),
        "coolness": cascade.colour_section(classes=["cool"], max_batch=16),
        "look": {"onnx": "colour.onnx", "head": "embedding", "size": [16, 16], "classes": ["cool"]},
    }
    return cascade.write(folder, name="mixed", detector={"max_detections": 400}, classifiers=classifiers, **KEYS)


def _tiled(folder: Path) -> Path:
    detector = {"tile": {"size": [cascade.SIDE, cascade.SIDE], "overlap": 0.2}, "max_batch": 32}
    stages = {"preprocess": 1, "crop": 1}
    return cascade.write(folder, name="tiled", detector=detector, colour={"instances": 2}, instances=stages, **KEYS)


def _text(folder: Path) -> Path:
    fetch("text", into=folder / "models")
    path = folder / "text.yaml"
    more = "".join(f"{name}: {value}\n" for name, value in KEYS.items())
    path.write_text((ROOT / "pipelines" / "text.yaml").read_text() + more)
    return path
