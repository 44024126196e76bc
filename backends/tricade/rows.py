"""Requests whose shapes agree, as one batch: their rows one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .plan import Shape
    from .stage import Arrays


def shapes_of(requests: Sequence[Arrays]) -> dict[str, Shape]:
    """The shapes of all requests' rows together."""
    first, *others = requests
    if not others:
        return {name: array.shape for name, array in first.items()}
    return {name: (sum(len(inputs[name]) for inputs in requests), *array.shape[1:]) for name, array in first.items()}


def slices_of(requests: Sequence[Arrays]) -> list[slice]:
    """Where each request's rows lie in the batch."""
    ends = accumulate((len(next(iter(inputs.values()))) for inputs in requests), initial=0)
    return [slice(start, end) for start, end in pairwise(ends)]


def joined(requests: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
    """All rows as one batch; a copy."""
    return {name: np.concatenate([inputs[name] for inputs in requests]) for name in requests[0]}


def split(outputs: Mapping[str, Any], slices: Sequence[slice]) -> list[dict[str, Any]]:
    """Each request's rows of the outputs; views."""
    return [{name: array[part] for name, array in outputs.items()} for part in slices]
