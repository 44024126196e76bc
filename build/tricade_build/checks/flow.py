"""An ensemble's steps and the tensors between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tricade.stage import Stage, Tensor

from .repository import Model, Repository, tensors_of


@dataclass(frozen=True)
class End:
    """One end of an edge: a model's tensor, and the shape with the batch as -1 where the model batches."""

    model: str
    tensor: Tensor
    batches: bool
    optional: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (-1, *self.tensor.dims) if self.batches else self.tensor.dims

    def __str__(self) -> str:
        return f"{self.tensor.dtype} {_brackets(self.shape)}"

    @property
    def where(self) -> str:
        return f"{self.model}'s {self.tensor.name}, {self}"


@dataclass(frozen=True)
class Step:
    """A step whose model is there; the maps are the model's names to the ensemble's."""

    model: Model
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True)
class Flow:
    """One ensemble; steps without a readable model are left out, what they would make is in `unknown`."""

    ensemble: Model
    steps: tuple[Step, ...]
    unknown: frozenset[str]

    @classmethod
    def of(cls, ensemble: Model, repository: Repository) -> Flow:
        entries = ensemble.config.ensemble_scheduling.step
        steps = [
            Step(repository.models[entry.model_name], _sorted(entry.input_map), _sorted(entry.output_map))
            for entry in entries
            if entry.model_name in repository.models
        ]
        lost = [entry for entry in entries if entry.model_name not in repository.models]
        return cls(ensemble, tuple(steps), frozenset(name for entry in lost for name in entry.output_map.values()))

    @cached_property
    def makers(self) -> dict[str, list[Step]]:
        """Which steps make a tensor of the ensemble; one, if all is well."""
        makers: dict[str, list[Step]] = {}
        for step in self.steps:
            for outer in step.outputs.values():
                makers.setdefault(outer, []).append(step)
        return makers

    def source(self, step: Step, tensor: str) -> Model | None:
        """The model that makes one of a step's inputs."""
        makers = self.makers.get(step.inputs.get(tensor, ""), [])
        return makers[0].model if len(makers) == 1 else None

    def users(self, step: Step, tensor: str) -> list[Model]:
        """The models that take one of a step's outputs."""
        outer = step.outputs.get(tensor)
        return [other.model for other in self.steps if outer in other.inputs.values()]

    def staged(self, kind: type[Stage]) -> Iterator[tuple[Step, Any]]:
        """The steps that are such a stage and could be loaded, each with it."""
        for step in self.steps:
            stage = step.model.stage[0]
            if isinstance(stage, kind):
                yield step, stage


def flows(repository: Repository) -> list[Flow]:
    return [Flow.of(ensemble, repository) for ensemble in repository.ensembles]


def ends_of(model: Model, entries: Any) -> dict[str, End]:
    """A configuration's inputs or outputs by name."""
    optional = {entry.name for entry in entries if getattr(entry, "optional", False)}
    return {
        name: End(model.name, tensor, model.config.max_batch_size > 0, name in optional)
        for name, tensor in tensors_of(entries).items()
    }


def agree(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """As Triton compares: -1 is any size."""
    return len(one) == len(other) and all(a == b or -1 in (a, b) for a, b in zip(one, other, strict=True))


def _sorted(names: Mapping[str, str]) -> dict[str, str]:
    """Protobuf's maps have no order of their own; what is said should."""
    return dict(sorted(names.items()))


def _brackets(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
