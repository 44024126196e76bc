"""Requests of one execution through a network as one batch, and back."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import StageError
from .stage import Arrays, Network


def run_together(network: Network, requests: Sequence[Arrays]) -> list[Arrays | StageError]:
    """Answer requests whose shapes agree with one run; one that makes its batch fail, fails alone."""
    answers: list[Arrays | StageError | None] = [None] * len(requests)
    for group in _alike(requests):
        for place, answer in zip(group, _answer(network, [requests[place] for place in group]), strict=True):
            answers[place] = answer
    return [answer for answer in answers if answer is not None]


def _alike(requests: Sequence[Arrays]) -> list[list[int]]:
    """Places of the requests whose rows may be one batch."""
    if len(requests) == 1:
        return [[0]]
    groups: dict[tuple[tuple[str, tuple[int, ...]], ...], list[int]] = {}
    for place, inputs in enumerate(requests):
        shape = tuple(sorted((name, array.shape[1:]) for name, array in inputs.items()))
        groups.setdefault(shape, []).append(place)
    return list(groups.values())


def _answer(network: Network, requests: Sequence[Arrays]) -> Sequence[Arrays | StageError]:
    try:
        return network.run_all(requests)
    except Exception as error:
        if len(requests) > 1:
            return [answer for inputs in requests for answer in _answer(network, [inputs])]
        return [error if isinstance(error, StageError) else StageError(f"the network failed: {error}")]
