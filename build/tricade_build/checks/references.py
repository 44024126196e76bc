"""Models that are called and are not there, and models that nothing calls."""

from __future__ import annotations

from collections.abc import Iterator

from tricade.crop import Crop
from tricade.turn import Turn

from . import register
from .finding import Finding, error, warning
from .repository import CONFIG, Model, Repository

LATEST = -1


def check(repository: Repository) -> Iterator[Finding]:
    callers: dict[str, list[str]] = {}
    for model in repository.models.values():
        for called, how in _calls(model):
            callers.setdefault(called, []).append(f"{model.name} ({how})")
    for called, by in callers.items():
        if called not in repository.models and called not in repository.unread:
            missing = f"no {CONFIG} in its folder" if (repository.folder / called).is_dir() else "no such folder"
            yield error(
                called,
                f"expected a model of this name, for {', '.join(by)}; there is {missing}",
                "build the pipeline again, or correct who calls it",
            )
    yield from _wrong_versions(repository)
    yield from _stale(repository, set(callers))


def _calls(model: Model) -> Iterator[tuple[str, str]]:
    """The models that this one needs, each with where it says so."""
    for step in model.config.ensemble_scheduling.step:
        yield step.model_name, "a step"
    stage = model.stage[0]
    if isinstance(stage, Crop):
        for name, target in stage.targets.items():
            yield target.model, f"parameter {name}.model"
    if isinstance(stage, Turn):
        yield stage.settings.model, "parameter model"


def _wrong_versions(repository: Repository) -> Iterator[Finding]:
    for ensemble in repository.ensembles:
        for step in ensemble.config.ensemble_scheduling.step:
            called = repository.models.get(step.model_name)
            if called and step.model_version not in (LATEST, *called.versions[-1:]):
                yield error(
                    ensemble.name,
                    f"expected version {step.model_version} of {called.name} to be served, as its step says; "
                    f"it is {', '.join(map(str, called.versions[-1:])) or 'none'}",
                    f"write model_version: {LATEST}, the latest",
                )


def _stale(repository: Repository, called: set[str]) -> Iterator[Finding]:
    for pipeline in sorted({model.owner for model in repository.models.values() if model.owner}):
        mine = [model for model in repository.models.values() if model.owner == pipeline and model.name != pipeline]
        if pipeline in repository.unread:
            continue  # who knows what it calls
        if pipeline not in repository.models:
            yield error(
                pipeline,
                f"expected the ensemble of pipeline {pipeline}, as {', '.join(model.name for model in mine)} are of "
                "it; there is none",
                mine[0].rebuild,
            )
            continue
        for model in mine:
            if model.name not in called:
                yield warning(
                    model.name,
                    f"expected to be called by pipeline {pipeline}, whose model it is; nothing calls it",
                    f"remove the folder, or {model.rebuild}",
                )


register(check)
