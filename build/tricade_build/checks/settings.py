"""Stages' parameters, as the stages themselves judge them."""

from __future__ import annotations

from collections.abc import Iterator

from . import register
from .finding import Finding, error
from .repository import Repository

AGAIN = "; render the repository again with tricade build"


def check(repository: Repository) -> Iterator[Finding]:
    for model in repository.models.values():
        for problem in model.stage[1]:
            told = problem.removeprefix(f"{model.name}: ").replace(f"{model.folder}/", "").removesuffix(AGAIN)
            yield error(model.name, told, model.rebuild)


register(check)
