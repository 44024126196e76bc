"""Which pictures the stream is made of: by default the folder's, or shares of ranges of object counts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .errors import BadObjects

FORM = "ranges of object counts with their shares, e.g. 0:20,1-5:50,6-:30"
_SHARE = re.compile(r"(\d+)(-(\d*))?:(\d+(?:\.\d+)?)")
NAMED = 12  # counts in a message


@dataclass(frozen=True)
class Share:
    """Pictures with `least` to `most` objects, and their part of the stream, all parts being 1."""

    least: int
    most: float  # infinite where the range is open
    part: float

    def __str__(self) -> str:
        end = "" if self.most == self.least else "-" if math.isinf(self.most) else f"-{self.most:.0f}"
        return f"{self.least}{end}"

    def holds(self, count: int) -> bool:
        return self.least <= count <= self.most


def shares_from(text: str) -> tuple[Share, ...]:
    """Of --objects, normalized; raises `BadObjects`."""
    shares = [_share(part.strip()) for part in text.split(",")]
    for place, share in enumerate(shares):
        for other in shares[:place]:
            if share.least <= other.most and other.least <= share.most:
                raise BadObjects(f"--objects: expected ranges that do not overlap; {other} and {share} do")
    whole = sum(share.part for share in shares)
    if whole <= 0:
        raise BadObjects(f"--objects: expected {FORM}; in {text!r} all shares are 0")
    return tuple(Share(share.least, share.most, share.part / whole) for share in shares if share.part)


def stream_of(counts: Sequence[int], shares: Sequence[Share], *, length: int, seed: int) -> list[int]:
    """Places of `length` pictures, drawn so that the shares come out; `counts` are the pictures' objects. Without
    shares all pictures come equally often. Raises `BadObjects` for a range that no picture is in."""
    random = np.random.default_rng(seed)
    if not shares:
        return _dealt(range(len(counts)), length, random)
    stream: list[int] = []
    for share, number in zip(shares, _numbers([share.part for share in shares], length), strict=True):
        places = [place for place, count in enumerate(counts) if share.holds(count)]
        if not places:
            raise BadObjects(
                f"--objects: expected a picture with {share} objects; those in the folder have {_said(counts)}; "
                "add such pictures, or leave that range out"
            )
        stream += _dealt(places, number, random)
    return [stream[place] for place in random.permutation(length)]


def _share(text: str) -> Share:
    match = _SHARE.fullmatch(text)
    if not match:
        raise BadObjects(f"--objects: expected {FORM}; got {text!r}")
    least, dash, end, part = match.groups()
    most = float(least) if not dash else float(end) if end else math.inf
    if most < int(least):
        raise BadObjects(f"--objects: expected a range from the lower count to the higher; got {text!r}")
    return Share(int(least), most, float(part))


def _dealt(places: Sequence[int], length: int, random: np.random.Generator) -> list[int]:
    """Every one as often as any other, give or take one, in a random order."""
    rounds = [random.permutation(len(places)) for _ in range(-(-length // len(places)))]
    return [places[place] for order in rounds for place in order][:length]


def _numbers(parts: Sequence[float], length: int) -> list[int]:
    """Whole numbers that sum up to `length`, by largest remainder."""
    exact = [part * length for part in parts]
    numbers = [math.floor(each) for each in exact]
    for place in sorted(range(len(parts)), key=lambda place: numbers[place] - exact[place])[: length - sum(numbers)]:
        numbers[place] += 1
    return numbers


def _said(counts: Sequence[int]) -> str:
    """0 (3 pictures), 7 (1 picture)."""
    found = sorted(Counter(counts).items())
    said = [f"{count} ({number} picture{'s' * (number > 1)})" for count, number in found]
    return ", ".join(said[:NAMED]) + (f", … up to {found[-1][0]}" if len(said) > NAMED else "")
