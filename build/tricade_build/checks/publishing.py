"""A build that was killed while it put its files in place: some of them are the old ones still."""

from __future__ import annotations

from collections.abc import Iterator

from tricade.publishing import is_cut_off

from . import register
from .finding import Finding, error
from .repository import Repository


def check(repository: Repository) -> Iterator[Finding]:
    if is_cut_off(repository.folder):
        yield error(
            "",
            f"expected {repository.folder} to hold one build; one that was killed is only half in place",
            "run: tricade build PIPELINE or tricade serve, which begin with the other half",
        )


register(check)
