"""What a target hands back: a network's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from .shapes import Shapes


class Report(Protocol):
    """Hears what is being worked on, and the share that is done where that is known, 0 to 1."""

    def __call__(self, what: str, share: float | None = None, /) -> None: ...


def unheard(what: str, share: float | None = None, /) -> None:
    """The report that nobody hears."""


@dataclass(frozen=True)
class Weights:
    """Files by their path in the model's folder, only those that are not as they should be.

    `removed`: files there that no longer belong to it.
    """

    shapes: Shapes
    files: Mapping[str, bytes]
    removed: tuple[str, ...] = ()

    @property
    def built(self) -> bool:
        return bool(self.files or self.removed)
