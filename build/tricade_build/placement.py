"""Placing files in a model repository: all in one step or none, and nobody else's models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tricade.errors import CutOff
from tricade.publishing import is_served
from tricade.versions import is_version, latest, versions

from .errors import RepositoryError
from .render import Files
from .staging import New, publish
from .weights import Weights

_OWNER = re.compile(r"# Pipeline ([a-z][a-z0-9_]*): ")


def owner_of(folder: Path) -> str | None:
    """The pipeline that a model belongs to, by the first line of its configuration."""
    try:
        with (folder / "config.pbtxt").open(encoding="utf-8") as file:
            found = _OWNER.match(file.readline())
    except (OSError, UnicodeDecodeError):
        return None
    return found.group(1) if found else None


def check_owners(repository: Path, pipeline: str, models: Iterable[str]) -> None:
    """Refuse to write into a folder that is not this pipeline's."""
    for model in models:
        folder = repository / model
        if folder.exists() and (owner := owner_of(folder)) != pipeline:
            whose = f"belongs to pipeline {owner}" if owner else "was not written by tricade"
            raise RepositoryError(
                f"expected {folder} to be pipeline {pipeline}'s, it {whose}; move it away, or rename the pipeline"
            )


def place(repository: Path, pipeline: str, files: Files, weights: Mapping[str, Weights]) -> list[str]:
    """Publish what differs, and weights that were built as a new version of their model.

    Models that the pipeline no longer has go, as do versions older than the one before; returns the models. The
    repository is `locked`.
    """
    models = {path.parts[0] for path in files}
    check_owners(repository, pipeline, models)
    present = [folder for folder in sorted(repository.glob("*")) if owner_of(folder) == pipeline]
    gone = [folder for folder in present if folder.name not in models]
    try:
        stale = [file for folder in present if folder.name in models for file in _stale(repository, folder, files)]
        outdated = [folder for model in weights for folder in _outdated(repository / model, new=weights[model].built)]
        new: New = {path: data for path, data in files.items() if not _same(repository / path, data)}
        for model in weights:
            new = {**new, **_version(repository, model, weights[model])}
        removed = [PurePosixPath(path.relative_to(repository).as_posix()) for path in (*gone, *stale, *outdated)]
        if new or removed:
            publish(repository, new, removed)
    except OSError as error:
        raise RepositoryError(f"expected to write into {repository}; {error}; it is as it was before") from error
    except CutOff as error:
        raise RepositoryError(str(error)) from error
    return [folder.name for folder in gone]


def _stale(repository: Path, folder: Path, files: Files) -> list[Path]:
    """Configuration that is no longer rendered."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and not is_version(file.relative_to(folder).parts[0])
        and PurePosixPath(file.relative_to(repository).as_posix()) not in files
    ]


def _outdated(model: Path, *, new: bool) -> list[Path]:
    """Versions that are neither the latest nor the one before, as it will be; servers keep theirs."""
    older = versions(model)[: -1 if new else -2]
    return [folder for folder in (model / str(number) for number in older) if not is_served(folder)]


def _version(repository: Path, model: str, weights: Weights) -> New:
    """The next version folder, where there is anything new."""
    folder = PurePosixPath(model, str(latest(repository / model) + 1))
    return {folder / name: content for name, content in weights.contents.items()} if weights.built else {}


def _same(file: Path, data: bytes) -> bool:
    return file.is_file() and file.stat().st_size == len(data) and file.read_bytes() == data
