"""Several small arrays as one tensor: whatever its size, a tensor between two steps costs some 50 µs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .errors import BadRequest
from .stage import Arrays


@dataclass(frozen=True)
class Field:
    """One array of a packet: its type and sides, -1 for any."""

    name: str
    dtype: DTypeLike
    sides: tuple[int, ...]

    def holds(self, shape: Sequence[int]) -> bool:
        """Whether an array may have that shape."""
        if len(shape) != len(self.sides):
            return False
        for side, fixed in zip(shape, self.sides, strict=True):  # noqa: SIM110 - `all` takes half as long again
            if side < 0 or side != fixed >= 0:
                return False
        return True


class Packet:
    """The arrays of one tensor, by descending size of their elements so that all lie aligned.

    UINT8 [B]: the sides of all of them as INT64, then their elements, each array in C order, nothing between them.
    """

    def __init__(self, tensor: str, *fields: Field) -> None:
        self.tensor, self.fields = tensor, fields
        self._sides = Struct(f"={sum(len(field.sides) for field in fields)}q")

    def pack(self, arrays: Arrays) -> NDArray[np.uint8]:
        """The tensor's bytes; an array of another type or rank is a fault of ours."""
        parts = [np.ascontiguousarray(arrays[field.name]) for field in self.fields]
        for field, part in zip(self.fields, parts, strict=True):
            assert part.dtype == field.dtype, f"{self.tensor}: {field.name}"
            assert field.holds(part.shape), f"{self.tensor}: {field.name}"
        sides = self._sides.pack(*(side for part in parts for side in part.shape))
        return np.frombuffer(b"".join([sides, *(part.data for part in parts)]), np.uint8)

    def unpack(self, packed: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """The arrays, as views; raises `BadRequest` for bytes that `pack` has not made."""
        if packed.ndim != 1 or len(packed) < self._sides.size:
            raise self._wrong(packed)
        sides = self._sides.unpack_from(packed.data)
        found: dict[str, NDArray[Any]] = {}
        start, used = self._sides.size, 0
        for field in self.fields:
            shape, used = sides[used : used + len(field.sides)], used + len(field.sides)
            end = start + prod(shape) * np.dtype(field.dtype).itemsize
            if not field.holds(shape) or max(shape) > len(packed) or end > len(packed):
                raise self._wrong(packed)
            found[field.name] = np.ndarray(shape, field.dtype, packed, start)
            start = end
        if start != len(packed):
            raise self._wrong(packed)
        return found

    def _wrong(self, packed: NDArray[np.uint8]) -> BadRequest:
        return BadRequest(
            f"{self.tensor}: expected what the pipeline's own step has made of {', '.join(f.name for f in self.fields)}"
            f"; got {list(packed.shape)} bytes of another layout"
        )
