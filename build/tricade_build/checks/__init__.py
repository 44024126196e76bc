"""Checks of a model repository: each file here that registers one looks for one kind of mistake, without a server."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path

from .finding import Finding
from .repository import Repository, read

__all__ = ["CHECKS", "Check", "Finding", "Repository", "check", "findings_in", "read", "register"]

Check = Callable[[Repository], Iterator[Finding]]

CHECKS: list[Check] = []


def register(check: Check) -> None:
    CHECKS.append(check)


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def check(repository: Path) -> list[Finding]:
    """Everything that would stop the models in this folder or bend what they answer; errors first."""
    return findings_in(read(repository))


def findings_in(repository: Repository) -> list[Finding]:
    return sorted({finding for look in CHECKS for finding in look(repository)})
