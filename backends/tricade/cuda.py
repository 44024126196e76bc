"""The edge to the GPU: the only file that imports CUDA's bindings, and only once a GPU is wanted."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
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
    """One GPU, a stream of its own there and the memory it was asked for; for one thread at a time."""

    def __init__(self, cuda: Any, index: int) -> None:
        self._cuda, self.index = cuda, index
        self._held: dict[int, str] = {}  # addresses and what frees them
        self._spare: dict[int, list[int]] = {}  # sizes and addresses of GPU memory that was lent
        self.select()
        self.name: str = self.call("cudaGetDeviceProperties", index).name.decode().rstrip("\0")
        self._stream = self.call("cudaStreamCreateWithFlags", cuda.cudaStreamNonBlocking)

    @property
    def stream(self) -> int:
        return int(self._stream)

    def select(self) -> None:
        """Make it the calling thread's GPU."""
        self.call("cudaSetDevice", self.index)

    def synchronize(self) -> None:
        """Wait until all that was put on the stream is done."""
        self.call("cudaStreamSynchronize", self._stream)

    def copy(self, *, to: int, source: int, size: int, direction: str) -> None:
        """Put a copy of `size` bytes on the stream; `direction` is HostToDevice, DeviceToHost or DeviceToDevice."""
        kind = getattr(self._cuda.cudaMemcpyKind, f"cudaMemcpy{direction}")
        self.call("cudaMemcpyAsync", to, source, size, kind, self._stream)

    def capture(self, work: Callable[[], None]) -> Graph:
        """What `work` puts on the stream as a graph, none of it done yet; `StageError` where it cannot be one."""
        mode = self._cuda.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        self.call("cudaStreamBeginCapture", self._stream, mode)
        try:
            work()
        except StageError:
            with suppress(StageError):
                self.call("cudaGraphDestroy", self.call("cudaStreamEndCapture", self._stream))
            raise
        graph = self.call("cudaStreamEndCapture", self._stream)
        try:
            return Graph(self, self.call("cudaGraphInstantiate", graph, 0))
        finally:
            self.call("cudaGraphDestroy", graph)

    def launch(self, graph: Any) -> None:
        """Put all that was captured on the stream."""
        self.call("cudaGraphLaunch", graph, self._stream)

    def allocate(self, size: int) -> int:
        """The address of that many bytes on the GPU, until `free` or `close`."""
        return self._allocated("cudaMalloc", size, freed_by="cudaFree")

    def allocate_host(self, size: int) -> int:
        """The address of that many page-locked bytes, until `free` or `close`."""
        return self._allocated("cudaMallocHost", size, freed_by="cudaFreeHost")

    def free(self, address: int) -> None:
        self.call(self._held.pop(address), address)

    def lend(self, size: int) -> Lent:
        """Memory on the GPU that its holder gives back by dropping it, which may be after `close`."""
        room = _room(size)
        spare = self._spare.get(room)
        return Lent(self, room, spare.pop() if spare else int(self.call("cudaMalloc", room)))

    def take_back(self, size: int, address: int) -> None:
        if self._stream is None:
            self.call("cudaFree", address)
        else:
            self._spare.setdefault(size, []).append(address)

    def call(self, function: str, *arguments: Any) -> Any:
        """A function of the CUDA runtime; `StageError` with its own words where it fails."""
        return _value(self._cuda, getattr(self._cuda, function)(*arguments))

    def close(self) -> None:
        if self._stream is not None:
            self.call("cudaStreamDestroy", self._stream)
        self._stream = None
        for address in list(self._held):
            self.free(address)
        for address in [address for spare in self._spare.values() for address in spare]:
            self.call("cudaFree", address)
        self._spare.clear()

    def _allocated(self, function: str, size: int, *, freed_by: str) -> int:
        address = int(self.call(function, size))
        self._held[address] = freed_by
        return address


class Graph:
    """Work for a stream, captured once and launched by one call ever after."""

    def __init__(self, device: Device, handle: Any) -> None:
        self._device, self._handle = device, handle

    def launch(self) -> None:
        self._device.launch(self._handle)

    def close(self) -> None:
        self._device.call("cudaGraphExecDestroy", self._handle)


class Lent:
    """A piece of GPU memory, its device's again as soon as nobody holds it."""

    def __init__(self, device: Device, size: int, address: int) -> None:
        self._device, self._size, self.address = device, size, address

    def __del__(self) -> None:
        with suppress(Exception):  # an interpreter that ends has no CUDA any more
            self._device.take_back(self._size, self.address)


class Block:
    """Page-locked memory and as much on the GPU; both only grow."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.size = self.address = self._host = 0

    def hold(self, size: int) -> None:
        """Grow to that many bytes at least; what lies here is lost where it grows."""
        if size > self.size:
            self.close()
            room = _room(size)
            self._host = self._device.allocate_host(room)
            self.address = self._device.allocate(room)
            self.size = room

    def view(self, offset: int, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Page-locked memory from `offset` on as an array, until the block grows."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        memory: Any = (ctypes.c_uint8 * size).from_address(self._host + offset)
        return np.ndarray(shape, dtype, buffer=memory)

    def upload(self, offset: int, size: int) -> None:
        self._copy(self.address, self._host, offset, size, "HostToDevice")

    def download(self, offset: int, size: int) -> None:
        self._copy(self._host, self.address, offset, size, "DeviceToHost")

    def close(self) -> None:
        held = self._host, self.address
        self.size = self.address = self._host = 0
        for address in filter(None, held):
            self._device.free(address)

    def _copy(self, to: int, source: int, offset: int, size: int, direction: str) -> None:
        self._device.copy(to=to + offset, source=source + offset, size=size, direction=direction)


def _room(size: int) -> int:
    """At most a quarter more than `size`: what grows step by step is moved only now and then."""
    step = 1 << max(size.bit_length() - 3, 0)
    return -(-size // step) * step


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
        cuda.cudaGetLastError()  # else TensorRT takes this error for one of its own
        raise StageError(f"CUDA: {cuda.cudaGetErrorString(error)[1].decode()} ({error.name})")
    return values[0] if values else None
