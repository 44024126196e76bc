"""An ensemble's edges: every tensor is made once, before it is used, as its users expect it.

Triton lets shapes agree either as configured or with the batch as a dimension in front. Only the latter holds for
every number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tricade.stage import Tensor

from . import register
from .finding import Finding, error, warning
from .flow import End, Flow, Step, agree, ends_of, flows
from .repository import CONFIG, Repository

Makers = Mapping[str, list[End]]  # of the ensemble's tensors


@dataclass(frozen=True)
class Edge:
    """A tensor of the ensemble on its way from the one step that makes it to one that takes it."""

    name: str
    given: End
    wanted: End

    def __str__(self) -> str:
        return f"{self.wanted.where}, wants the tensor {self.name} that is {self.given.where}"


def check(repository: Repository) -> Iterator[Finding]:
    for flow in flows(repository):
        makers = _makers(flow)
        yield from _made_twice(flow, makers)
        wanted = list(ends_of(flow.ensemble, flow.ensemble.config.output).items())
        for step in flow.steps:
            yield from _wrong_names(flow, step)
            yield from _not_mapped(flow, step)
            yield from _batches(flow, step)
            ends = ends_of(step.model, step.model.config.input)
            wanted += [(outer, ends[mine]) for mine, outer in step.inputs.items() if mine in ends]
        yield from _not_made(flow, wanted, makers)
        yield from _disagreeing(flow, [Edge(n, makers[n][0], end) for n, end in wanted if len(makers.get(n, ())) == 1])


def _makers(flow: Flow) -> dict[str, list[End]]:
    makers = {name: [end] for name, end in ends_of(flow.ensemble, flow.ensemble.config.input).items()}
    for step in flow.steps:
        outputs = ends_of(step.model, step.model.config.output)
        for mine, outer in step.outputs.items():
            # Of an output that is not there, only the name is known.
            end = outputs.get(mine) or End(step.model.name, Tensor(mine, "", ()), batches=False)
            makers.setdefault(outer, []).append(end)
    return makers


def _made_twice(flow: Flow, makers: Makers) -> Iterator[Finding]:
    for name, ends in makers.items():
        if len(ends) > 1:
            by = " and ".join(f"{end.model}'s {end.tensor.name}" for end in ends)
            yield error(
                flow.ensemble.name,
                f"expected one step to make the tensor {name}; {by} do",
                "give one of them another name in output_map",
            )


def _wrong_names(flow: Flow, step: Step) -> Iterator[Finding]:
    """Tensors that the step's model does not have."""
    for kind, entries, mapped in (
        ("input", step.model.config.input, step.inputs),
        ("output", step.model.config.output, step.outputs),
    ):
        names = [entry.name for entry in entries]
        unknown = [f"{mine} (for {outer})" for mine, outer in mapped.items() if mine not in names]
        if names and unknown:
            yield error(
                flow.ensemble.name,
                f"expected each {kind} out of {', '.join(names)} of {step.model.name}; "
                f"{kind}_map says {', '.join(unknown)}",
                flow.ensemble.rebuild,
            )


def _not_mapped(flow: Flow, step: Step) -> Iterator[Finding]:
    for name, wanted in ends_of(step.model, step.model.config.input).items():
        if name not in step.inputs and not wanted.optional:
            yield error(
                flow.ensemble.name,
                f"expected a tensor for {wanted.where}, which is required; input_map has none",
                flow.ensemble.rebuild,
            )


def _not_made(flow: Flow, wanted: Sequence[tuple[str, End]], makers: Makers) -> Iterator[Finding]:
    lacking: dict[str, list[str]] = {}
    for name, end in wanted:
        if name not in makers and name not in flow.unknown:
            lacking.setdefault(name, []).append(end.where)
    for name, users in lacking.items():
        yield error(
            flow.ensemble.name,
            f"expected a step that makes the tensor {name}, for {' and '.join(users)}; none does",
            flow.ensemble.rebuild,
        )


def _disagreeing(flow: Flow, edges: Sequence[Edge]) -> Iterator[Finding]:
    ensemble, remedy = flow.ensemble.name, f"make both {CONFIG} agree, or {flow.ensemble.rebuild}"
    misfits: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        given, wanted = edge.given, edge.wanted
        if not given.tensor.dims or not wanted.tensor.dims:
            continue  # not there or not complete, which has been said
        if given.optional and not wanted.optional:
            problem = f"expected the tensor {edge.name} in every request, for {wanted.where}; it is optional"
            yield error(ensemble, problem, remedy)
        if given.tensor.dtype != wanted.tensor.dtype:
            yield error(ensemble, f"expected equal types; {edge}", remedy)
        elif not agree(given.shape, wanted.shape):
            misfits.setdefault((given.model, wanted.model), []).append(edge)
    for between in misfits.values():
        yield _misfit(ensemble, between, remedy)


def _misfit(ensemble: str, edges: Sequence[Edge], remedy: str) -> Finding:
    """Shapes between two models that differ once the batch is counted in; told by the first."""
    given, wanted = edges[0].given, edges[0].wanted
    others = f" (the same with {', '.join(edge.name for edge in edges[1:])})" if edges[1:] else ""
    if given.batches == wanted.batches:
        return error(ensemble, f"expected equal shapes; {edges[0]}{others}", remedy)
    if wanted.batches and agree(given.tensor.dims, wanted.tensor.dims):
        problem = f"expected a batch in front; {edges[0]}, which Triton takes for a batch of one{others}"
        remedy = f"let {given.model} make [-1,…], or set max_batch_size: 0 in {wanted.model}"
        return warning(ensemble, problem, remedy)
    problem = f"expected equal shapes, the batch in front; {edges[0]}{others}"
    return error(ensemble, problem, f"only one of them batches: correct max_batch_size or dims; or {remedy}")


def _batches(flow: Flow, step: Step) -> Iterator[Finding]:
    most, own = flow.ensemble.config.max_batch_size, step.model.config.max_batch_size
    if 0 < own < most:
        yield error(
            flow.ensemble.name,
            f"expected steps that take its max_batch_size, {most}; {step.model.name} takes {own}",
            f"set it to {own}",
        )


register(check)
