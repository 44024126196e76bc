"""What a stage is: a pure function of arrays by tensor name, loaded once from a model's configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from typing_extensions import Self

from .rows import joined, slices_of, split

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


def spec_from_config(
    config: Mapping[str, Any], *, directory: Path, version: int, device_id: int | None = None
) -> ModelSpec:
    """From a model configuration as Triton writes it in JSON (whole numbers may be text).

    Parameters in capitals are for others, `FORCE_CPU_ONLY_INPUT_TENSORS` for the Python backend say.
    """
    parameters = config.get("parameters", {}).items()
    return ModelSpec(
        name=config["name"],
        directory=directory,
        version=version,
        parameters={name: value["string_value"] for name, value in parameters if not name.isupper()},
        inputs=tuple(_tensor(entry) for entry in config["input"]),
        outputs=tuple(_tensor(entry) for entry in config["output"]),
        max_batch_size=int(config.get("max_batch_size", 0)),
        instances=sum(int(group.get("count", 1)) for group in config.get("instance_group", [])),
        model_file=config.get("default_model_filename", ""),
        device_id=device_id,
    )


def _tensor(entry: Mapping[str, Any]) -> Tensor:
    dims = tuple(int(dim) for dim in entry["dims"])
    return Tensor(entry["name"], entry["data_type"].removeprefix("TYPE_"), dims)


class Model(ABC):
    """What a Triton instance holds; what it has to say once it is loaded goes to the server's log."""

    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    @abstractmethod
    def load(cls, spec: ModelSpec) -> Self:
        """Parse the settings, complete and frozen; `BadSettings` stops the model."""

    def warm_up(self) -> None:  # noqa: B027 - most have nothing to do
        """Do now what the first requests would wait for; what is raised stops the model as well."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Give back what is held outside the process's own memory."""


class Stage(Model):
    """One request at a time, arrays in, arrays out; errors of the request are `StageError`s."""

    # Whether it asks Triton first if anybody still waits for the answer, which takes 0.15 ms.
    asks_first = False

    @abstractmethod
    def process(self, inputs: Arrays, infer: Infer) -> dict[str, NDArray[Any]]:
        """Answer one request."""


class Network(Model):
    """Whole batches at a time: the inputs' and outputs' first dimension is the batch."""

    @abstractmethod
    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """All outputs for one batch."""

    def run_all(self, requests: Sequence[Arrays]) -> list[dict[str, NDArray[Any]]]:
        """The outputs of one or more requests whose shapes agree, run as one batch."""
        if len(requests) == 1:
            return [self.run(requests[0])]
        return split(self.run(joined(requests)), slices_of(requests))
