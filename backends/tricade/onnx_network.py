"""ONNX Runtime behind a Triton model: CUDA where there is one, else the processor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnxruntime
from numpy.typing import NDArray
from typing_extensions import Self

from .errors import BadSettings, StageError
from .stage import Arrays, ModelSpec, Network

_TYPES = {
    "UINT8": "tensor(uint8)",
    "INT32": "tensor(int32)",
    "INT64": "tensor(int64)",
    "FP16": "tensor(float16)",
    "FP32": "tensor(float)",
}


class OnnxNetwork(Network):
    """A session; `provider` is what it really got, which may be less than what was asked for."""

    def __init__(self, session: Any, outputs: tuple[str, ...]) -> None:
        self.session, self.outputs = session, outputs
        self.provider: str = session.get_providers()[0]
        self.notes = (f"runs on ONNX Runtime {onnxruntime.__version__}, {self.provider}",)

    @classmethod
    def load(cls, spec: ModelSpec) -> Self:
        file = spec.directory / str(spec.version) / (spec.model_file or "model.onnx")
        if not file.is_file():
            raise BadSettings(f"{spec.name}: there is no {file.name} in version {spec.version}; run: tricade build")
        session = session_of(file, threads=_threads(spec), device_id=spec.device_id)
        _check_types(spec, session)
        return cls(session, tuple(output.name for output in spec.outputs))

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        try:
            values = self.session.run(list(self.outputs), dict(inputs))
        except Exception as error:  # the package's errors share no other base
            raise StageError(f"ONNX Runtime: {error}") from error
        return dict(zip(self.outputs, values, strict=True))


def session_of(file: Path, *, threads: int, device_id: int | None = None) -> Any:
    """An ONNX Runtime session whose idle threads sleep, so that other processes get the cores."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    providers: list[Any] = ["CPUExecutionProvider"]
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
