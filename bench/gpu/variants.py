"""What a served copy of a repository has otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tricade_tune.variants import Edit, variant

__all__ = ["Edit", "delayed", "instances", "unbatched", "variant", "without_ring"]


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
