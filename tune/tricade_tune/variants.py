"""Copies of a built repository with other configurations; networks are links."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

Edit = Callable[[str, Any], None]  # the model's name, its configuration


def variant(repository: Path, into: Path, *edits: Edit, models: Collection[str] = ()) -> Path:
    """All edits done to every configuration, also those that models fall back to. What is there is replaced. With
    `models` it holds these alone."""
    shutil.rmtree(into, ignore_errors=True)

    def left_out(folder: str, names: list[str]) -> set[str]:
        others = {name for name in names if models and name not in models} if Path(folder) == repository else set()
        return others | {name for name in names if name.startswith(".tricade")}

    shutil.copytree(repository, into, ignore=left_out, copy_function=_linked)
    for file in [*into.glob("*/config.pbtxt"), *into.glob("*/configs/*.pbtxt")]:
        text = file.read_text(encoding="utf-8")
        config = text_format.Parse(text, ModelConfig())
        for edit in edits:
            edit(config.name or file.relative_to(into).parts[0], config)
        file.unlink()  # a link, and the other one is to stay as it is
        file.write_text(f"{text.splitlines()[0]}\n{text_format.MessageToString(config)}", encoding="utf-8")
    return into


def _linked(source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)  # of a symbolic link what it leads to
    except OSError:
        shutil.copy2(source, target)
