"""TensorRT without a GPU: as much of its Python package as a plan needs, on the CUDA of `fake_cuda.py`.

A fake has the names its version has and no more, so that what only newer versions know fails here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tricade.stage import ModelSpec, Tensor

from .fake_context import MEMORY, Context, Died

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
Strategy = Enum("ExecutionContextAllocationStrategy", ["STATIC", "ON_PROFILE_CHANGE", "USER_MANAGED"])
Severity = Enum("Severity", ["INTERNAL_ERROR", "ERROR", "WARNING", "INFO", "VERBOSE"])

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
    shares_profiles: bool = True  # always from 10 on; before, a manifest must say so
    can_be_captured: bool = True
    made: list[weakref.ref[Context]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.version.startswith("8"):
            self.create_execution_context_without_device_memory = lambda: self._context(own_memory=False)
            self.device_memory_size = MEMORY
        else:
            self.device_memory_size_v2 = MEMORY

    @property
    def contexts(self) -> list[Context]:
        """Those that still live."""
        return [context for context in (reference() for reference in self.made) if context is not None]

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

    def create_execution_context(self, strategy: Strategy = Strategy.STATIC) -> Context | None:
        return self._context(own_memory=strategy is Strategy.STATIC)

    def _context(self, *, own_memory: bool) -> Context:
        if self.contexts and not self.shares_profiles:
            raise Died("a second context on a plan that was built without PROFILE_SHARING_0806")
        context = Context(self, own_memory)
        self.made.append(weakref.ref(context))
        return context


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
    if not module.__version__.startswith("8"):
        module.ExecutionContextAllocationStrategy = Strategy
    return module


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
