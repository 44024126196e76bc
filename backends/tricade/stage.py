"""What a stage is: a pure function of arrays by tensor name, loaded once from a model's configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from typing_extensions import Self

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Call:
    """A request to another model of the same server."""

    model: str
    inputs: Arrays
    outputs: tuple[str, ...]


# Sends all calls at once and returns their answers in the same order; raises `StageError` when one fails.
Infer = Callable[[Sequence[Call]], list[Arrays]]


@dataclass(frozen=True)
class Tensor:
    """An input or output as `config.pbtxt` has it: Triton's type name without `TYPE_`, dims without the batch."""

    name: str
    dtype: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class ModelSpec:
    """What a model's configuration says, in our own terms."""

    name: str
    directory: Path
    version: int
    parameters: Mapping[str, str]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    instances: int
    model_file: str = ""
    device_id: int | None = None


class Stage(ABC):
    """One request at a time, arrays in, arrays out; errors of the request are `StageError`s."""

    @classmethod
    @abstractmethod
    def load(cls, spec: ModelSpec) -> Self:
        """Parse the settings, complete and frozen; `BadSettings` stops the model."""

    @abstractmethod
    def process(self, inputs: Arrays, infer: Infer) -> dict[str, NDArray[Any]]:
        """Answer one request."""

    def close(self) -> None:  # noqa: B027 - most stages hold nothing
        """Give back what the stage holds outside its own memory."""
