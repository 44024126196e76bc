"""Requests of one execution through a network as one batch, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    """Places of the requests that may be concatenated."""
    groups: dict[tuple[tuple[str, tuple[int, ...]], ...], list[int]] = {}
    for place, inputs in enumerate(requests):
        shape = tuple(sorted((name, array.shape[1:]) for name, array in inputs.items()))
        groups.setdefault(shape, []).append(place)
    return list(groups.values())


def _answer(network: Network, requests: Sequence[Arrays]) -> list[Arrays | StageError]:
    try:
        if len(requests) == 1:
            return [network.run(requests[0])]
        batch = {name: np.concatenate([inputs[name] for inputs in requests]) for name in requests[0]}
        return _split(network.run(batch), [len(next(iter(inputs.values()))) for inputs in requests])
    except Exception as error:
        if len(requests) > 1:
            return [answer for inputs in requests for answer in _answer(network, [inputs])]
        return [error if isinstance(error, StageError) else StageError(f"the network failed: {error}")]


def _split(outputs: Arrays, sizes: Sequence[int]) -> list[Arrays | StageError]:
    ends = np.cumsum(sizes)
    return [
        {name: array[end - size : end] for name, array in outputs.items()}
        for size, end in zip(sizes, ends, strict=True)
    ]
