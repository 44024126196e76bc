"""What a check has to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, order=True)
class Finding:
    """An error will not serve or serves wrong, a warning serves and is not as it is meant; errors sort first."""

    severity: Literal["error", "warning"]
    model: str
    problem: str  # what was expected, what came
    remedy: str


def error(model: str, problem: str, remedy: str) -> Finding:
    return Finding("error", model, problem, remedy)


def warning(model: str, problem: str, remedy: str) -> Finding:
    return Finding("warning", model, problem, remedy)
