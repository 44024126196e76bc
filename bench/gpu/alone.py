"""A network of a repository without Triton, in the process that asks: back to back, each execution waited for."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import numpy as np
from google.protobuf import json_format, text_format
from numpy.typing import NDArray
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tricade.onnx_network import OnnxNetwork
from tricade.plan_network import PlanNetwork
from tricade.stage import Network, Tensor, spec_from_config
from tricade.versions import latest

WARM_UP = 5  # executions; from the third on a plan's is a CUDA graph


def loaded(folder: Path) -> list[str]:
    """Load the model of that folder; what it has to say."""
    return [type(_opened(folder)[0]).__name__, *_opened(folder)[0].notes]


def warmed(folder: Path, *, batch: int) -> None:
    """Have run that batch."""
    network, entry = _opened(folder)
    for _ in range(WARM_UP):
        network.run({entry.name: _rows(entry, batch)})


def rows_per_s(folder: Path, *, batch: int, seconds: float, begin_s: float) -> tuple[float, list[str]]:
    """From `begin_s` on, of `time.monotonic`, which all processes share; and its warnings."""
    network, entry = _opened(folder)
    rows = _rows(entry, batch)
    time.sleep(max(0.0, begin_s - time.monotonic()))
    begin, runs = time.monotonic(), 0
    while time.monotonic() < begin + seconds:
        network.run({entry.name: rows})
        runs += 1
    return runs * batch / (time.monotonic() - begin), list(network.warnings)


def _rows(entry: Tensor, batch: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (batch, *entry.dims), np.uint8)


@cache
def _opened(folder: Path) -> tuple[Network, Tensor]:
    version = latest(folder)
    plan = (folder / str(version) / "model.plan").is_file()
    file = folder / "config.pbtxt" if plan else folder / "configs" / "onnxruntime.pbtxt"
    config = text_format.Parse(file.read_text(encoding="utf-8"), ModelConfig())
    as_json = json_format.MessageToDict(config, preserving_proto_field_name=True) | {"name": folder.name}
    spec = spec_from_config(as_json, directory=folder, version=version, device_id=0 if plan else None)
    return (PlanNetwork if plan else OnnxNetwork).load(spec), spec.inputs[0]
