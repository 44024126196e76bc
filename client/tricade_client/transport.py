"""The seam between the calls and the wire; `triton.py` fills it with gRPC, tests with a fake."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .codec import Request
from .errors import BadInput, Timeout
from .results import Arrays


@dataclass(frozen=True)
class Deadline:
    """When a call that began at `start_s` (monotonic clock) ends."""

    timeout_s: float
    start_s: float = field(default_factory=time.monotonic)

    def left_s(self) -> float | None:
        """Seconds left, None for no end; raises `Timeout` when there are none."""
        if math.isinf(self.timeout_s):
            return None
        left = self.start_s + self.timeout_s - time.monotonic()
        if left <= 0:
            raise Timeout(f"no answer within {self.timeout_s:g} s; give more timeout_s, or use stream for many images")
        return left


@dataclass(frozen=True)
class Context:
    """What every call of the transport carries: gRPC metadata and the deadline."""

    headers: Mapping[str, str]
    deadline: Deadline


class Transport(Protocol):
    """Coroutines, also where they block: a blocking transport's never suspend. Raises `TricadeError`s only."""

    async def infer(self, request: Request, context: Context) -> Arrays:
        """Output arrays by name."""

    async def parameters(self, model: str, context: Context) -> Mapping[str, str]:
        """The `parameters` of a model's configuration."""

    async def models(self, context: Context) -> tuple[str, ...]:
        """The names of all models the server knows."""

    async def close(self) -> None:
        """Give the connection back; calls in flight fail."""


def checked_timeout(timeout_s: float) -> float:
    """Seconds above 0; infinity waits for ever."""
    if not timeout_s > 0:
        raise BadInput(f"timeout_s: expected seconds above 0 (math.inf waits for ever), got {timeout_s!r}")
    return timeout_s


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """gRPC metadata: keys in small letters, values of printable ASCII."""
    checked = {key.lower(): value for key, value in headers.items()}
    for key, value in checked.items():
        if not key or not set(key) <= _KEY_CHARACTERS or not (value.isascii() and value.isprintable()):
            raise BadInput(
                f"headers: expected a name of letters, digits, '-', '_', '.' and a value of printable ASCII, "
                f"got {key!r}: {value!r}"
            )
    return checked


_KEY_CHARACTERS = set("abcdefghijklmnopqrstuvwxyz0123456789-_.")
