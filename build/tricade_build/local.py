"""A rendered pipeline in one process: the very stages and networks that Triton would run, without a server.

Calibration and verification look through it, tests and measurements compare with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format
from numpy.typing import NDArray
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tricade.crop import Crop
from tricade.label import Label
from tricade.onnx_network import OnnxNetwork
from tricade.preprocess import Preprocess
from tricade.publishing import at_rest
from tricade.stage import Arrays, Call, ModelSpec, Stage, spec_from_config
from tricade.turn import Turn
from tricade.versions import latest

Run = Callable[[Arrays], Arrays]  # a network: all outputs for one batch
STAGES: Mapping[str, type[Stage]] = {"preprocess": Preprocess, "crop": Crop, "turn": Turn, "label": Label}


class LocalPipeline:
    """Call it with the ensemble's inputs; networks are shared among threads, stages are each thread's own.

    Anything that runs may be put in the place of one of `networks`.
    """

    def __init__(self, repository: Path, name: str) -> None:
        self._repository = repository
        self.networks: dict[str, Run] = {}
        self._stage_specs: dict[str, tuple[type[Stage], ModelSpec]] = {}
        with at_rest(repository):
            self.ensemble = _config(repository / name / "config.pbtxt")
            for step in self.ensemble.ensemble_scheduling.step:
                self._prepare(step.model_name)
        self._mine = threading.local()
        self._opened: list[Stage] = []

    def __call__(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """All outputs of the ensemble for one request."""
        return self.tensors(inputs, [output.name for output in self.ensemble.output])

    def tensors(self, inputs: Arrays, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
        """Tensors of the ensemble, its outputs or those between its steps; steps that they do not need rest."""
        tensors: dict[str, NDArray[Any]] = dict(inputs)
        for step in self._needed(wanted):
            given = {mine: tensors[outer] for mine, outer in step.input_map.items() if outer in tensors}
            answer = self._run(step.model_name, given)
            tensors |= {outer: answer[mine] for mine, outer in step.output_map.items()}
        return {name: tensors[name] for name in wanted}

    def _needed(self, wanted: Collection[str]) -> list[Any]:
        """The steps on the way to some tensors, in their order."""
        needed, steps = set(wanted), []
        for step in reversed(self.ensemble.ensemble_scheduling.step):
            if needed.intersection(step.output_map.values()):
                needed.update(step.input_map.values())
                steps.append(step)
        return steps[::-1]

    def close(self) -> None:
        """Remove the frame stores of all threads."""
        for stage in self._opened:
            stage.close()

    def _prepare(self, model: str) -> None:
        folder = self._repository / model
        config = _config(folder / "config.pbtxt")
        if config.backend in STAGES:
            self._stage_specs[model] = (STAGES[config.backend], _spec(config, folder))
        else:
            spec = _spec(_config(folder / "configs" / "onnxruntime.pbtxt"), folder)
            self.networks[model] = self._network(spec).run

    def _network(self, spec: ModelSpec) -> OnnxNetwork:
        return OnnxNetwork.load(spec)

    def _run(self, model: str, inputs: Arrays) -> Arrays:
        if model in self.networks:
            return self.networks[model](inputs)
        return self._stage(model).process(inputs, self._infer)

    def _infer(self, calls: Sequence[Call]) -> list[Arrays]:
        return [self._run(call.model, call.inputs) for call in calls]

    def _stage(self, model: str) -> Stage:
        mine: dict[str, Stage] = self._mine.__dict__
        if model not in mine:
            kind, spec = self._stage_specs[model]
            mine[model] = kind.load(spec)
            self._opened.append(mine[model])
        return mine[model]


def _config(file: Path) -> Any:
    return text_format.Parse(file.read_text(encoding="utf-8"), ModelConfig())


def _spec(config: Any, folder: Path) -> ModelSpec:
    as_json = json_format.MessageToDict(config, preserving_proto_field_name=True)
    return spec_from_config(as_json | {"name": folder.name}, directory=folder, version=latest(folder))
