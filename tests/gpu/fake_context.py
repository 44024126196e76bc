"""TensorRT's execution context on the fake CUDA: executes late, and only what a real one may be asked for."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .fake_cuda import ALIGNMENT, Cuda

if TYPE_CHECKING:
    from .fakes import Engine

NUMPY = {"FLOAT": "f4", "HALF": "f2", "INT8": "i1", "INT32": "i4", "INT64": "i8", "BOOL": "?", "UINT8": "u1"}
MEMORY = 4096  # bytes for activations


class Died(BaseException):
    """What ends a real process (SIGSEGV), so that nothing that tries may catch it."""


@dataclass(eq=False)
class Context:
    """`changes` counts what it was told, `ready` is that number when it last executed outside a capture."""

    engine: Engine
    own_memory: bool
    profile: int = 0
    works: bool = True
    executions: int = 0
    switches: int = 0
    changes: int = 0
    ready: int = -1
    device_memory: int = 0
    memory_size: int = 0  # what it was told of it, from 10.1 on
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.engine.version.startswith(("10", "11")):
            self.set_device_memory = self._set_device_memory

    def set_optimization_profile_async(self, profile: int, _stream: int) -> bool:
        self.profile, self.shapes = profile, {}
        self.switches += 1
        self.changes += 1
        return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        if -1 in self.engine.inputs[name][1]:
            low, _, high = self.engine.profiles[self.profile][name]
            if not all(a <= b <= c for a, b, c in zip(low, shape, high, strict=True)):
                return False
        self.shapes[name] = shape
        self.changes += 1
        return True

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return {**self.shapes, **self.engine.infer(self.shapes)}[name]

    def set_tensor_address(self, name: str, address: int) -> bool:
        assert address % ALIGNMENT == 0
        self.addresses[name] = address
        self.changes += 1
        return True

    def execute_async_v3(self, _stream: int) -> bool:
        """Refused after an error of CUDA's that nobody took note of, and in a capture right after a change."""
        cuda = Cuda.now
        if not self.works or cuda.last_error:
            return False
        if cuda.capturing is None:
            self.ready = self.changes
        elif self.ready != self.changes or not self.engine.can_be_captured:
            cuda.invalidate()
            return False
        seen, itself = self.changes if cuda.capturing is not None else None, weakref.ref(self)
        shapes = {name: self.get_tensor_shape(name) for name in (*self.engine.inputs, *self.engine.outputs)}
        addresses = dict(self.addresses)

        def work() -> None:
            context = itself()
            assert context is not None, "executed after its context was gone"
            assert seen in (None, context.changes), "a graph was launched after its context was changed"
            context._execute(shapes, addresses)

        cuda.put(work)
        return True

    def _execute(self, shapes: dict[str, tuple[int, ...]], addresses: dict[str, int]) -> None:
        if not self.own_memory:
            Cuda.now.check("device", self.device_memory, MEMORY)
            assert self.memory_size == (0 if self.engine.version.startswith("8") else MEMORY)
        engine, arrays = self.engine, {}
        for name, (kind, _) in {**engine.inputs, **engine.outputs}.items():
            dtype = np.dtype(NUMPY[kind])
            size = int(np.prod(shapes[name])) * dtype.itemsize
            Cuda.now.check("device", addresses[name], size)
            memory = (ctypes.c_uint8 * size).from_address(addresses[name])
            arrays[name] = np.ndarray(shapes[name], dtype, buffer=memory)
        self.executions += 1
        for name, value in engine.compute({name: arrays[name] for name in engine.inputs}).items():
            arrays[name][...] = value

    def _set_device_memory(self, memory: int, size: int) -> None:
        self.device_memory, self.memory_size = memory, size
        self.changes += 1
