"""A pipeline's models in a repository: whether all are there, what their weights allow, how a setting changes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tricade.manifest import PLAN, manifest_from
from tricade_build.spec import Pipeline
from tricade_server.machine import misfit_of
from tricade_server.repository import ServedModel, read_repository

from .errors import BadPipelineModels
from .setting import Setting
from .variants import Edit

MOST_BATCH = 64


@dataclass(frozen=True)
class Models:
    """Names of all models; of the networks, as the pipeline file calls them, those that run as plans here; and the
    largest `max_batch` of each classifier that its weights allow."""

    names: frozenset[str]
    plans: frozenset[str]
    most_batch: Mapping[str, int]


def models_of(pipeline: Pipeline, *, path: Path, repository: Path) -> Models:
    """Raises `BadPipelineModels` where one is missing, `ServeError` where there is no repository."""
    found = {model.name: model for model in read_repository(repository)}
    names = {pipeline.name, *(f"{pipeline.name}_{own}" for own in _own_names(pipeline))}
    if missing := sorted(names - found.keys()):
        raise BadPipelineModels(
            f"expected {repository} to hold pipeline {pipeline.name} as {path} has it; there is no {missing[0]}; "
            f"run: tricade build {path} --repository {repository}"
        )
    networks = {own: found[f"{pipeline.name}_{own}"] for own in ("detector", *pipeline.classifiers)}
    plans = frozenset(own for own, model in networks.items() if model.is_plan and not misfit_of(model.plan))
    most = {
        own: _most_batch(networks[own], each.max_batch, is_plan=own in plans)
        for own, each in pipeline.classifiers.items()
    }
    return Models(frozenset(names), plans, most)


def configured(setting: Setting, pipeline: str) -> Edit:
    """Every model of the pipeline as the setting has it."""
    steps = {step.name: step for step in setting.steps}

    def edit(name: str, config: Any) -> None:
        own = name.removeprefix(f"{pipeline}_")
        turned = own.removeprefix("turn_")
        step = steps.get(own if own == turned else "crop")
        if name == pipeline or step is None:
            return
        config.instance_group[0].count = step.instances
        if step.max_delay_us is not None:
            config.dynamic_batching.max_queue_delay_microseconds = step.max_delay_us
        if step.max_batch:
            config.max_batch_size = step.max_batch
        batches = {f"{each.name}.max_batch": each.max_batch for each in setting.steps if own == "crop"}
        if own != turned:
            batches = {"max_batch": steps[turned].max_batch}
        for parameter, batch in batches.items():
            if parameter in config.parameters:
                config.parameters[parameter].string_value = str(batch)

    return edit


def _own_names(pipeline: Pipeline) -> list[str]:
    turns = [f"turn_{name}" for name, classifier in pipeline.classifiers.items() if classifier.upright]
    return ["preprocess", "detector", "crop", *pipeline.classifiers, *turns, "label"]


def _most_batch(model: ServedModel, batch: int, *, is_plan: bool) -> int:
    """An ONNX file takes any; 1 may mean that its export takes no other. A plan takes what it was compiled for."""
    if not is_plan:
        return 1 if batch == 1 else max(batch, MOST_BATCH)
    try:
        profile = manifest_from(model.version_folder)[PLAN]["engine"]["profile"]
        return min(MOST_BATCH, *(int(largest[0]) for _, _, largest in profile.values()))
    except (KeyError, TypeError, ValueError):
        return batch
