"""The repositories that are measured: one for Triton, one for those who keep pictures in their own memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

import cascade
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tricade_build.build import build

from . import ROOT

CROPS = 64  # max_batch of the cheap cascade's classifier; tests have it small


def built(pipelines: Collection[str], folder: Path) -> Path:
    """Of `text` and `squares` those that are named; the path of their repository."""
    repository = folder / "repository"
    if "text" in pipelines:
        build(ROOT / "pipelines" / "text.yaml", repository=repository)
    if "squares" in pipelines:
        build(cascade.write(folder / "squares", colour={"max_batch": CROPS}), repository=repository)
    return repository


def without_ring(repository: Path, into: Path) -> Path:
    """The same networks and settings but for the frame store, which is for processes that share pictures."""
    shutil.copytree(repository, into, copy_function=os.link)
    for file in into.glob("*_preprocess/config.pbtxt"):
        config = text_format.Parse(file.read_text(encoding="utf-8"), ModelConfig())
        config.parameters["ring_bytes"].string_value = "0"
        file.unlink()  # a link, and the other one is to stay as it is
        file.write_text(text_format.MessageToString(config), encoding="utf-8")
    return into
