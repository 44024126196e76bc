"""What a network is given while the pipeline runs over real pictures."""

from __future__ import annotations

from dataclasses import dataclass

from tricade.stage import Arrays


@dataclass(frozen=True)
class Sample:
    """One execution of a network: its inputs by name, the first dimension is the batch."""

    picture: str  # the file's name
    inputs: Arrays
