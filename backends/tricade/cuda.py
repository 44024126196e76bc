"""The edge to the GPU: the only file that imports CUDA's bindings, and only once a GPU is wanted."""

from __future__ import annotations

import ctypes
import math
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .errors import EngineMisfit, StageError

BINDINGS = "cuda.bindings.runtime"
OLDER_BINDINGS = "cuda.cudart"  # cuda-python before 12.6


def open_device(index: int) -> Device:
    """The GPU of that number, counted as Triton counts them; `EngineMisfit` where there is none."""
    cuda = _bindings()
    try:
        count = _value(cuda, cuda.cudaGetDeviceCount())
    except (StageError, RuntimeError) as error:  # RuntimeError: the driver's library cannot be opened
        raise EngineMisfit(f"a plan needs a CUDA device, this machine has none: {error}") from error
    if index >= count:
        raise EngineMisfit(
            f"instance_group names GPU {index}, this process sees {count} (the first is 0); "
            "correct `gpus` in config.pbtxt or CUDA_VISIBLE_DEVICES"
        )
    return Device(cuda, index)


class Device:
    """One GPU and a stream of its own there; every method is for one thread at a time."""

    def __init__(self, cuda: Any, index: int) -> None:
        self._cuda, self._index = cuda, index
        self.select()
        self.name: str = self.call("cudaGetDeviceProperties", index).name.decode().rstrip("\0")
        self._stream = self.call("cudaStreamCreateWithFlags", cuda.cudaStreamNonBlocking)

    @property
    def stream(self) -> int:
        return int(self._stream)

    def select(self) -> None:
        """Make it the calling thread's GPU."""
        self.call("cudaSetDevice", self._index)

    def synchronize(self) -> None:
        """Wait until all that was put on the stream is done."""
        self.call("cudaStreamSynchronize", self._stream)

    def copy(self, *, to: int, source: int, size: int, direction: str) -> None:
        """Put a copy of `size` bytes on the stream; `direction` is HostToDevice or DeviceToHost."""
        kind = getattr(self._cuda.cudaMemcpyKind, f"cudaMemcpy{direction}")
        self.call("cudaMemcpyAsync", to, source, size, kind, self._stream)

    def call(self, function: str, *arguments: Any) -> Any:
        """A function of the CUDA runtime; `StageError` with its own words where it fails."""
        return _value(self._cuda, getattr(self._cuda, function)(*arguments))

    def close(self) -> None:
        if self._stream is not None:
            self.call("cudaStreamDestroy", self._stream)
        self._stream = None


class Buffer:
    """One tensor's place in page-locked memory and on the GPU; both only grow."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._size = self._host = self.address = 0

    def view(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """The page-locked memory as an array, until the next view."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        self._hold(max(1, size))
        memory: Any = (ctypes.c_uint8 * size).from_address(self._host)
        return np.ndarray(shape, dtype, buffer=memory)

    def upload(self, size: int) -> None:
        self._device.copy(to=self.address, source=self._host, size=size, direction="HostToDevice")

    def download(self, size: int) -> None:
        self._device.copy(to=self._host, source=self.address, size=size, direction="DeviceToHost")

    def close(self) -> None:
        host, address = self._host, self.address
        self._size = self._host = self.address = 0
        if host:
            self._device.call("cudaFreeHost", host)
        if address:
            self._device.call("cudaFree", address)

    def _hold(self, size: int) -> None:
        if size > self._size:
            self.close()
            self._host = int(self._device.call("cudaMallocHost", size))
            self.address = int(self._device.call("cudaMalloc", size))
            self._size = size


def _bindings() -> Any:
    try:
        return import_module(BINDINGS)
    except ImportError as error:
        with suppress(ImportError):
            return import_module(OLDER_BINDINGS)
        raise EngineMisfit(
            f"running a plan needs the Python package cuda-python, which cannot be imported: {error}; "
            "run: pip install cuda-python"
        ) from error


def _value(cuda: Any, result: tuple[Any, ...]) -> Any:
    """What a function returned after its error code."""
    error, *values = result
    if int(error) != 0:
        raise StageError(f"CUDA: {cuda.cudaGetErrorString(error)[1].decode()} ({error.name})")
    return values[0] if values else None
