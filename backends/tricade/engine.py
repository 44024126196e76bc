"""An engine read from a plan file, and its execution contexts; the only file that imports `tensorrt`."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from .cuda import Device
from .errors import EngineMisfit, StageError
from .manifest import manifest_from
from .tensorrt_log import log_class

SHARING = "PROFILE_SHARING_0806"  # the builder's flag of 8.6, as manifests record it
_NO_TENSORRT = (
    "running a plan needs the Python package tensorrt, which cannot be imported: {}; install it (8.5 or later), "
    "or use a Triton that has the tensorrt backend"
)


class Engine:
    """A deserialized engine; `raw` is TensorRT's own object.

    `shares_profiles`: whether two contexts may have one profile. It is known, never tried: in 8.6 a second context on
    a plan that was built without takes the process down.
    """

    def __init__(self, device: Device, file: Path) -> None:
        self._trt, log = tensorrt()
        self.version: str = self._trt.__version__
        self._runtime = self._trt.Runtime(log)  # to be kept as long as the engine
        plan = file.read_bytes()
        self.raw = self._runtime.deserialize_cuda_engine(plan)
        if self.raw is None:
            raise EngineMisfit(
                f"{file.name} is no plan for TensorRT {self.version} on {device.name}: {log.told()}; "
                "a plan fits the TensorRT version and the kind of GPU it was built on: run here: tricade build"
            )
        self.shares_profiles = self._strategies is not None or _built_to_share(file, plan)

    @property
    def activation_size(self) -> int:
        """The bytes that a context needs for activations, whatever the shapes."""
        newer = getattr(self.raw, "device_memory_size_v2", None)  # 10.1
        return self.raw.device_memory_size if newer is None else newer

    def context(self) -> Any:
        """An execution context with activation memory of its own."""
        return must(self.raw.create_execution_context(), "cannot make an execution context")

    def context_over(self, memory: int) -> Any:
        """An execution context whose activations go to that address; one of those that share it runs at a time."""
        if self._strategies is None:
            context = self.raw.create_execution_context_without_device_memory()
        else:
            context = self.raw.create_execution_context(self._strategies.USER_MANAGED)
        must(context, "cannot make an execution context without memory")
        if hasattr(context, "set_device_memory"):  # 10.1
            context.set_device_memory(memory, self.activation_size)
        else:
            context.device_memory = memory
        return context

    @property
    def _strategies(self) -> Any:
        """From 10.0 on, where all plans share their profiles."""
        return getattr(self._trt, "ExecutionContextAllocationStrategy", None)


def _built_to_share(file: Path, plan: bytes) -> bool:
    """Whether the manifest beside a plan is this very plan's and records the flag."""
    try:
        record = manifest_from(file.parent)[file.name]
        return record["sha256"] == hashlib.sha256(plan).hexdigest() and SHARING in list(record["engine"]["flags"])
    except (KeyError, TypeError):
        return False


@cache
def tensorrt() -> tuple[Any, Any]:
    """The package and a logger; cached, for TensorRT keeps to the first logger of a process."""
    try:
        trt = import_module("tensorrt")
    except (ImportError, OSError) as error:  # OSError: one of its libraries
        raise EngineMisfit(_NO_TENSORRT.format(error)) from error
    if not hasattr(trt, "Runtime"):
        raise EngineMisfit(_NO_TENSORRT.format(f"found {list(trt.__path__)} in its place"))
    log = log_class(trt)()
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(log, "")
    return trt, log


def must(value: Any, failure: str) -> Any:
    """A value that TensorRT gives, which is None or False where it failed."""
    if value is None or value is False:
        raise StageError(f"TensorRT {failure}: {tensorrt()[1].told()}")
    return value
