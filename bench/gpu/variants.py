"""Copies of a built repository with other configurations; networks are links."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

Edit = Callable[[str, Any], None]  # the model's name, its configuration


def variant(repository: Path, into: Path, *edits: Edit) -> Path:
    """All edits done to every configuration, also those that models fall back to. What is there is replaced."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(repository, into, ignore=shutil.ignore_patterns(".tricade*"), copy_function=_linked)
    for file in [*into.glob("*/config.pbtxt"), *into.glob("*/configs/*.pbtxt")]:
        text = file.read_text(encoding="utf-8")
        config = text_format.Parse(text, ModelConfig())
        for edit in edits:
            edit(config.name or file.relative_to(into).parts[0], config)
        file.unlink()  # a link, and the other one is to stay as it is
        file.write_text(f"{text.splitlines()[0]}\n{text_format.MessageToString(config)}", encoding="utf-8")
    return into


def instances(counts: Mapping[str, int]) -> Edit:
    """Processes by what follows the pipeline's name, e.g. preprocess or detector."""

    def edit(name: str, config: Any) -> None:
        count = counts.get(name.partition("_")[2])
        if count and config.instance_group:
            config.instance_group[0].count = count

    return edit


def delayed(max_delay_us: int) -> Edit:
    """Networks wait so long for company."""

    def edit(name: str, config: Any) -> None:  # noqa: ARG001
        if config.HasField("dynamic_batching"):
            config.dynamic_batching.max_queue_delay_microseconds = max_delay_us

    return edit


def unbatched(name: str, config: Any) -> None:  # noqa: ARG001
    """Every request is an execution of its own."""
    config.ClearField("dynamic_batching")


def without_ring(name: str, config: Any) -> None:  # noqa: ARG001
    """Stages keep pictures in their own memory, for clients that run them."""
    if "ring_bytes" in config.parameters:
        config.parameters["ring_bytes"].string_value = "0"


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
