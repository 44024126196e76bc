"""`config.pbtxt`: readable, complete, and of the folder it lies in."""

from __future__ import annotations

from collections.abc import Iterator

from . import register
from .finding import Finding, error
from .repository import CONFIG, Model, Repository, tensors_of

BUILD = "run: tricade build PIPELINE"


def check(repository: Repository) -> Iterator[Finding]:
    for name, unread in repository.unread.items():
        yield error(name, f"expected a model configuration in {CONFIG}; {unread.why}", f"correct it, or {BUILD}")
    if not repository.ensembles and not repository.unread:
        yield error(
            "", f"expected a pipeline, an ensemble, in {repository.folder}; there is none", f"{BUILD} --repository"
        )
    for model in repository.models.values():
        yield from _problems(model)


def _problems(model: Model) -> Iterator[Finding]:
    config = model.config
    if config.name and config.name != model.name:
        yield error(
            model.name,
            f"expected the name of the folder in {CONFIG}, {model.name}; got {config.name}",
            f"rename one of them, or {model.rebuild}",
        )
    if not model.is_ensemble and not config.platform and not config.backend:
        yield error(model.name, f"expected a backend or a platform in {CONFIG}; there is neither", model.rebuild)
    if not model.versions:
        make = "make it, with a file .gitkeep inside so that Git keeps it"
        yield error(
            model.name,
            f"expected a version folder, {model.folder.name}/1; there is none",
            model.rebuild if model.is_network else make,
        )
    for kind, entries in (("input", config.input), ("output", config.output)):
        if not entries:
            yield error(model.name, f"expected at least one {kind} in {CONFIG}; there is none", model.rebuild)
        for tensor in tensors_of(entries).values():
            if tensor.dtype == "INVALID" or not tensor.dims or not tensor.name:
                yield error(
                    model.name,
                    f"expected name, data_type and dims of each {kind} in {CONFIG}; "
                    f"got {tensor.name or 'no name'}, {tensor.dtype}, {list(tensor.dims)}",
                    model.rebuild,
                )
        names = [entry.name for entry in entries]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield error(model.name, f"expected each {kind} once in {CONFIG}; {name} is there twice", model.rebuild)


register(check)
