"""A stage as Triton would load it, and everything that is wrong with its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tricade.errors import BadSettings
from tricade.settings import groups_of
from tricade.stage import ModelSpec, Stage


def loaded(kind: type[Stage], spec: ModelSpec) -> tuple[Stage | None, tuple[str, ...]]:
    """The stage, closed again, and no problems; or none and all of them."""
    spec = _without_ring(spec)
    stage, problem = _load(kind, spec)
    if stage is not None:
        return stage, ()
    # A stage stops at the first mistake: asked for less, it tells those behind it.
    problems = {problem: None}
    for parameters in _parts(spec.parameters):
        stage, problem = _load(kind, replace(spec, parameters=parameters))
        if stage is None:
            problems[problem] = None
    return None, tuple(problems)


def _parts(parameters: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The stage's own parameters with those of one group at a time."""
    plain, groups = groups_of(parameters)
    own = plain | {f"detector.{name}": value for name, value in groups.get("detector", {}).items()}
    for group, values in groups.items():
        yield own | {f"{group}.{name}": value for name, value in values.items()}


def _load(kind: type[Stage], spec: ModelSpec) -> tuple[Stage | None, str]:
    try:
        stage = kind.load(spec)
    except BadSettings as error:
        return None, str(error)
    stage.close()
    return stage, ""


def _without_ring(spec: ModelSpec) -> ModelSpec:
    """Looking at a repository takes no shared memory."""
    if not spec.parameters.get("ring_bytes", "").isdecimal():
        return spec
    return replace(spec, parameters={**spec.parameters, "ring_bytes": "0"})
