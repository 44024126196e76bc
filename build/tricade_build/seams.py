"""Where a graph may be opened before it is looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seams:
    """`cuts`: operators at the end, unknown to ONNX Runtime, that are left out; what they take is what counts then.

    `sizes`: names of inputs [M, 2] for the width and height of the picture; they get those of the network's input.
    """

    cuts: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()


NO_SEAMS = Seams()
