"""What a caller may say, checked once: for one call, and for a client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict

from .codec import checked_outputs, checked_threshold
from .images import Encoding
from .transport import checked_headers, checked_timeout


class CallOptions(TypedDict, total=False):
    """Keywords of `detect` and `stream`; what is left out is as the client or the pipeline has it."""

    threshold: float | None  # the least score, 0 to 1, in place of the pipeline's
    timeout_s: float | None  # for a whole `detect`, for each image of a `stream`
    outputs: Iterable[str] | None  # the only tensors to ask for, see `Result.arrays`
    headers: Mapping[str, str] | None  # gRPC metadata, `traceparent` for instance


@dataclass(frozen=True)
class Options:
    """Of one call; None and empty stand for the client's own."""

    threshold: float | None
    timeout_s: float | None
    outputs: tuple[str, ...]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Settings:
    """Of a client."""

    url: str
    pipeline: str
    timeout_s: float
    headers: Mapping[str, str]
    encoding: Encoding


def options_from(
    *,
    threshold: float | None = None,
    timeout_s: float | None = None,
    outputs: Iterable[str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Options:
    """The keywords of `CallOptions`, checked; raises `BadInput`."""
    return Options(
        checked_threshold(threshold),
        None if timeout_s is None else checked_timeout(timeout_s),
        checked_outputs(outputs),
        checked_headers(headers or {}),
    )
