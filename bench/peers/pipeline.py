"""What the peers serve: tricade's own stages and networks in one process, so that only the way of serving differs."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tricade.onnx_network import OnnxNetwork, session_of
from tricade.stage import Arrays, ModelSpec, Stage
from tricade_build.local import LocalPipeline

_PREFIX = "BENCH_"


@dataclass(frozen=True)
class Place:
    """What a peer serves and where: `workers` processes, each with `threads` for a network, on a loopback `port`."""

    repository: Path
    pipeline: str
    port: int
    workers: int
    threads: int

    def environment(self) -> dict[str, str]:
        """For the peer's process, whose framework starts further ones."""
        return {f"{_PREFIX}{name.upper()}": str(value) for name, value in vars(self).items()}

    @classmethod
    def from_environment(cls) -> Place:
        """What `environment` said."""
        told = {name: os.environ[f"{_PREFIX}{name.upper()}"] for name in cls.__dataclass_fields__}
        return cls(
            repository=Path(told["repository"]),
            pipeline=told["pipeline"],
            port=int(told["port"]),
            workers=int(told["workers"]),
            threads=int(told["threads"]),
        )


class OneSet(LocalPipeline):
    """One set of stages for all threads, loaded at once: without a frame store they keep nothing between calls."""

    def __init__(self, repository: Path, name: str) -> None:
        super().__init__(repository, name)
        cv2.setNumThreads(1)  # callers and processes are the parallelism
        self._stages = {model: kind.load(spec) for model, (kind, spec) in self._stage_specs.items()}

    def _stage(self, model: str) -> Stage:
        return self._stages[model]


class Pipeline(OneSet):
    """The whole pipeline, or a part of it. A network is a session with so many threads that is given whole batches, as
    ONNX Runtime's documentation shows."""

    def __init__(self, place: Place) -> None:
        self._threads = place.threads
        super().__init__(place.repository, place.pipeline)

    def _network(self, spec: ModelSpec) -> OnnxNetwork:
        session = session_of(spec.directory / str(spec.version) / "model.onnx", threads=self._threads)
        return OnnxNetwork(session, tuple(output.name for output in spec.outputs))

    def outputs(self, picture: bytes) -> dict[str, NDArray[Any]]:
        """The ensemble's outputs for one encoded picture."""
        return self(image_from(picture))

    def after(self, tensors: Arrays) -> dict[str, NDArray[Any]]:
        """The ensemble's outputs, where the steps that made `tensors` have been run elsewhere."""
        found = dict(tensors)
        for step in self.ensemble.ensemble_scheduling.step:
            if found.keys().isdisjoint(step.output_map.values()):
                given = {mine: found[outer] for mine, outer in step.input_map.items() if outer in found}
                answer = self._run(step.model_name, given)
                found |= {outer: answer[mine] for mine, outer in step.output_map.items()}
        return {output.name: found[output.name] for output in self.ensemble.output}


class Unserved(Pipeline):
    """The same with the networks as tricade runs them."""

    def _network(self, spec: ModelSpec) -> OnnxNetwork:
        parameters = {**spec.parameters, "intra_op_thread_count": str(self._threads)}
        return OnnxNetwork.load(replace(spec, parameters=parameters))


def image_from(picture: bytes) -> dict[str, NDArray[Any]]:
    """IMAGE [1]."""
    image = np.empty(1, np.object_)
    image[0] = picture
    return {"IMAGE": image}


def plain(outputs: Arrays) -> dict[str, Any]:
    """Tensors as JSON takes them: lists, and names as text."""
    return {name: _plain(array) for name, array in outputs.items()}


def _plain(array: NDArray[Any]) -> list[Any]:
    if array.dtype != np.object_:
        return array.tolist()
    flat = np.array([name.decode() for name in array.ravel()], np.object_)
    return flat.reshape(array.shape).tolist()
