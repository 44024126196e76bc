"""TensorRT and CUDA without a GPU: as much of their Python packages as a plan needs, in this process's memory.

A fake has the names its version has and no more, so that what only newer versions know fails here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tricade.stage import ModelSpec, Tensor

_TYPES_8 = ["FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "FP8"]
DataType = {
    "8.5.3": Enum("DataType", _TYPES_8[:-2]),
    "8.6.0": Enum("DataType", _TYPES_8),
    "10.13.0": Enum("DataType", [*_TYPES_8, "BF16", "INT64", "INT4"]),
    "11.4.0": Enum("DataType", [*_TYPES_8, "BF16", "INT64", "INT4", "FP4", "E8M0"]),
}
Mode = Enum("TensorIOMode", ["NONE", "INPUT", "OUTPUT"])
Location = Enum("TensorLocation", ["DEVICE", "HOST"])
Format = Enum("TensorFormat", ["LINEAR", "CHW4", "HWC"])
Severity = Enum("Severity", ["INTERNAL_ERROR", "ERROR", "WARNING", "INFO", "VERBOSE"])

NUMPY = {"FLOAT": "f4", "HALF": "f2", "INT8": "i1", "INT32": "i4", "INT64": "i8", "BOOL": "?", "UINT8": "u1"}
Range = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # smallest, likeliest, largest shape


@dataclass
class Engine:
    """An engine as TensorRT from 8.5 on has it: asked by tensor names. `inputs`, `outputs`: type name, shape."""

    inputs: Mapping[str, tuple[str, tuple[int, ...]]]
    outputs: Mapping[str, tuple[str, tuple[int, ...]]]
    profiles: Sequence[Mapping[str, Range]]
    compute: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda inputs: inputs
    infer: Callable[[Mapping[str, Any]], Mapping[str, tuple[int, ...]]] = lambda shapes: shapes
    version: str = "8.6.0"
    on_host: str = ""
    formats: Mapping[str, Format] = field(default_factory=dict)
    contexts: list[Context] = field(default_factory=list)

    @property
    def num_io_tensors(self) -> int:
        return len(self.inputs) + len(self.outputs)

    @property
    def num_optimization_profiles(self) -> int:
        return len(self.profiles)

    def get_tensor_name(self, index: int) -> str:
        return [*self.inputs, *self.outputs][index]

    def get_tensor_mode(self, name: str) -> Mode:
        return Mode.INPUT if name in self.inputs else Mode.OUTPUT

    def get_tensor_dtype(self, name: str) -> Any:
        return DataType[self.version][{**self.inputs, **self.outputs}[name][0]]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return {**self.inputs, **self.outputs}[name][1]

    def get_tensor_location(self, name: str) -> Location:
        return Location.HOST if name == self.on_host else Location.DEVICE

    def get_tensor_format(self, name: str) -> Format:
        return self.formats.get(name, Format.LINEAR)

    def get_tensor_profile_shape(self, name: str, profile: int) -> list[tuple[int, ...]]:
        return list(self.profiles[profile][name])

    def create_execution_context(self) -> Context:
        self.contexts.append(Context(self))
        return self.contexts[-1]


@dataclass
class Context:
    """Executes at once instead of on a stream."""

    engine: Engine
    profile: int = 0
    switches: int = 0
    executions: int = 0
    works: bool = True
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)

    def set_optimization_profile_async(self, profile: int, _stream: int) -> bool:
        self.profile, self.switches, self.shapes = profile, self.switches + 1, {}
        return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        if -1 in self.engine.inputs[name][1]:
            low, _, high = self.engine.profiles[self.profile][name]
            if not all(a <= b <= c for a, b, c in zip(low, shape, high, strict=True)):
                return False
        self.shapes[name] = shape
        return True

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return {**self.shapes, **self.engine.infer(self.shapes)}[name]

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.addresses[name] = address
        return True

    def execute_async_v3(self, _stream: int) -> bool:
        if not self.works:
            return False
        self.executions += 1
        inputs = {name: self._array(name, kind) for name, (kind, _) in self.engine.inputs.items()}
        for name, value in self.engine.compute(inputs).items():
            self._array(name, self.engine.outputs[name][0])[...] = value
        return True

    def _array(self, name: str, kind: str) -> Any:
        shape, dtype = self.get_tensor_shape(name), np.dtype(NUMPY[kind])
        size = int(np.prod(shape)) * dtype.itemsize
        return np.ndarray(shape, dtype, buffer=(ctypes.c_uint8 * size).from_address(self.addresses[name]))


class Logger:
    """`trt.ILogger`, to be derived from."""

    Severity = Severity


def tensorrt(engine: Engine | None, *, says: Sequence[str] = ()) -> ModuleType:
    """The package, whose every plan is that engine; with none, it logs errors instead."""

    class Runtime:
        def __init__(self, log: Any) -> None:
            self.log = log

        def deserialize_cuda_engine(self, _plan: bytes) -> Engine | None:
            for line in says:
                self.log.log(Severity.ERROR, line)
            return engine

    module = ModuleType("tensorrt")
    module.__version__ = engine.version if engine else "8.6.0"
    module.Runtime, module.ILogger = Runtime, Logger
    return module


_Error = IntEnum("cudaError_t", ["cudaSuccess", "cudaErrorMemoryAllocation", "cudaErrorNoDevice"], start=0)


class Cuda(ModuleType):
    """`cuda.bindings.runtime` with its GPU's memory in this process."""

    cudaStreamNonBlocking = 1  # noqa: N815 - its name
    cudaMemcpyKind = IntEnum("cudaMemcpyKind", ["cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost"])  # noqa: N815

    def __init__(self, *, devices: int = 1, memory: int = 1 << 30) -> None:
        super().__init__("runtime")
        self.devices, self.memory = devices, memory
        self.held: dict[int, Any] = {}
        self.streams: list[int] = []
        self.copies: list[tuple[str, int]] = []

    def cudaGetDeviceCount(self) -> tuple[Any, ...]:  # noqa: N802
        return (_Error(0 if self.devices else 2), self.devices)

    def cudaGetErrorString(self, error: Any) -> tuple[Any, ...]:  # noqa: N802
        return (_Error(0), [b"no error", b"out of memory", b"no CUDA-capable device is detected"][error])

    def cudaSetDevice(self, index: int) -> tuple[Any, ...]:  # noqa: N802
        return (_Error(0 if index < self.devices else 2),)

    def cudaGetDeviceProperties(self, _index: int) -> tuple[Any, ...]:  # noqa: N802
        return (_Error(0), SimpleNamespace(name=b"Fake GPU\0\0"))

    def cudaStreamCreateWithFlags(self, _flags: int) -> tuple[Any, ...]:  # noqa: N802
        self.streams.append(7)
        return (_Error(0), 7)

    def cudaStreamDestroy(self, stream: int) -> tuple[Any, ...]:  # noqa: N802
        self.streams.remove(stream)
        return (_Error(0),)

    def cudaStreamSynchronize(self, _stream: int) -> tuple[Any, ...]:  # noqa: N802
        return (_Error(0),)

    def cudaMalloc(self, size: int) -> tuple[Any, ...]:  # noqa: N802
        if size > self.memory:
            return (_Error(1), None)
        memory = ctypes.create_string_buffer(size)
        self.held[ctypes.addressof(memory)] = memory
        return (_Error(0), ctypes.addressof(memory))

    cudaMallocHost = cudaMalloc  # noqa: N815

    def cudaFree(self, address: int) -> tuple[Any, ...]:  # noqa: N802
        del self.held[address]
        return (_Error(0),)

    cudaFreeHost = cudaFree  # noqa: N815

    def cudaMemcpyAsync(self, to: int, source: int, size: int, kind: Any, _stream: int) -> tuple[Any, ...]:  # noqa: N802
        self.copies.append((kind.name.removeprefix("cudaMemcpy"), size))
        ctypes.memmove(to, source, size)
        return (_Error(0),)


def classifier(**changes: Any) -> Engine:
    """Sums each crop's bytes: `INDEX` is the sum, `SCORE` half of it."""

    def compute(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        sums = inputs["CROPS"].sum(axis=(1, 2, 3), dtype=np.int32)[:, None]
        return {"INDEX": sums, "SCORE": sums / 2}

    return Engine(
        inputs={"CROPS": ("UINT8", (-1, 2, -1, 3))},
        outputs={"INDEX": ("INT32", (-1, 1)), "SCORE": ("FLOAT", (-1, 1))},
        profiles=[
            {"CROPS": ((1, 2, 4, 3), (4, 2, 4, 3), (8, 2, 8, 3))},
            {"CROPS": ((1, 2, 4, 3), (4, 2, 4, 3), (8, 2, 4, 3))},
        ],
        compute=compute,
        infer=lambda shapes: dict.fromkeys(("INDEX", "SCORE"), (shapes["CROPS"][0], 1)),
        **changes,
    )


def specification(directory: Path = Path(), **changes: Any) -> ModelSpec:
    spec = ModelSpec(
        name="text_orientation",
        directory=directory,
        version=1,
        parameters={},
        inputs=(Tensor("CROPS", "UINT8", (2, -1, 3)),),
        outputs=(Tensor("INDEX", "INT32", (1,)), Tensor("SCORE", "FP32", (1,))),
        max_batch_size=8,
        instances=1,
        device_id=0,
    )
    return replace(spec, **changes)
