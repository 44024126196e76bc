"""ONNX Runtime behind a Triton model: CUDA where there is one, else the processor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime
from numpy.typing import NDArray
from typing_extensions import Self

from .errors import BadSettings, StageError
from .side_by_side import SideBySide
from .stage import Arrays, ModelSpec, Network

PROCESSOR = "CPUExecutionProvider"
_TYPES = {
    "UINT8": "tensor(uint8)",
    "INT32": "tensor(int32)",
    "INT64": "tensor(int64)",
    "FP16": "tensor(float16)",
    "FP32": "tensor(float)",
}


class OnnxNetwork(Network):
    """A session; `provider` is what it really got, which may be less than what was asked for. `alone` is a second one,
    of one thread where batches are large enough, if they are to be computed side by side."""

    def __init__(self, session: Any, outputs: tuple[str, ...], *, alone: Any = None, threads: int = 1) -> None:
        self.session, self.outputs = session, outputs
        self.provider: str = session.get_providers()[0]
        shared = partial(_values, session, list(outputs))
        self._apart = SideBySide(shared, partial(_values, alone, list(outputs)), threads=threads) if alone else None
        self._run = self._apart or shared
        self.notes = (f"runs on ONNX Runtime {onnxruntime.__version__}, {self.provider}",)

    @classmethod
    def load(cls, spec: ModelSpec) -> Self:
        file = spec.directory / str(spec.version) / (spec.model_file or "model.onnx")
        if not file.is_file():
            raise BadSettings(f"{spec.name}: there is no {file.name} in version {spec.version}; run: tricade build")
        threads = _threads(spec)
        session = session_of(file, threads=threads, device_id=spec.device_id)
        _check_types(spec, session)
        alone = None
        if session.get_providers()[0] == PROCESSOR and spec.max_batch_size > 1 and threads > 1:
            alone = session_of(file, threads=1) if spec.max_batch_size >= threads else session
        return cls(session, tuple(output.name for output in spec.outputs), alone=alone, threads=threads)

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        try:
            values = self._run(inputs)
        except Exception as error:  # the package's errors share no other base
            raise StageError(f"ONNX Runtime: {error}") from error
        return dict(zip(self.outputs, values, strict=True))

    def close(self) -> None:
        if self._apart:
            self._apart.close()


def _values(session: Any, outputs: list[str], inputs: Arrays) -> Sequence[NDArray[Any]]:
    values: Sequence[NDArray[Any]] = session.run(outputs, dict(inputs))
    return values


def session_of(file: Path, *, threads: int, device_id: int | None = None) -> Any:
    """An ONNX Runtime session whose idle threads sleep, so that other processes get the cores."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    providers: list[Any] = [PROCESSOR]
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers() and device_id is not None:
        providers.insert(0, ("CUDAExecutionProvider", {"device_id": device_id}))
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=providers)
    except Exception as error:
        raise BadSettings(f"ONNX Runtime {onnxruntime.__version__} cannot load {file.name}: {error}") from error


def cores() -> int:
    """The cores this process may use: its affinity, and the quota of its control group."""
    allowed = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return allowed if quota == "max" else max(1, min(allowed, int(quota) // int(period)))
    except (OSError, ValueError):
        return allowed


def _threads(spec: ModelSpec) -> int:
    """Twice the cores shared among the model's instances, but no more than there are: one instance that works alone
    should have them all, and idle threads sleep. `intra_op_thread_count` (the native backend's name) overrides it."""
    asked = int(spec.parameters.get("intra_op_thread_count", "0"))
    return asked or max(1, min(cores(), 2 * cores() // max(1, spec.instances)))


def _check_types(spec: ModelSpec, session: Any) -> None:
    found = {value.name: value.type for value in [*session.get_inputs(), *session.get_outputs()]}
    for tensor in [*spec.inputs, *spec.outputs]:
        if tensor.name not in found:
            raise BadSettings(f"{spec.name}: config.pbtxt names {tensor.name}, the ONNX has {', '.join(found)}")
        if _TYPES.get(tensor.dtype, found[tensor.name]) != found[tensor.name]:
            raise BadSettings(
                f"{spec.name}: config.pbtxt says {tensor.name} is {tensor.dtype}, the ONNX has {found[tensor.name]}"
            )
