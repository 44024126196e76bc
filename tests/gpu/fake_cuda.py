"""`cuda.bindings.runtime` without a GPU: its memory is this process's, and what is put on a stream is done late.

Work waits until somebody synchronizes, so that whoever reads too early reads nothing. Copies check that they go
from held memory of one kind to held memory of the other.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

Work = Callable[[], None]
Answer = tuple[Any, ...]

Error = IntEnum(
    "cudaError_t",
    {
        "cudaSuccess": 0,
        "cudaErrorMemoryAllocation": 2,
        "cudaErrorNoDevice": 100,
        "cudaErrorStreamCaptureUnsupported": 900,
        "cudaErrorStreamCaptureInvalidated": 901,
    },
)
_WORDS = {
    Error.cudaSuccess: b"no error",
    Error.cudaErrorMemoryAllocation: b"out of memory",
    Error.cudaErrorNoDevice: b"no CUDA-capable device is detected",
    Error.cudaErrorStreamCaptureUnsupported: b"operation not permitted when stream is capturing",
    Error.cudaErrorStreamCaptureInvalidated: b"operation failed due to a previous error during capture",
}
ALIGNMENT = 256  # of every address that CUDA gives
_KINDS = ["cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"]


class Cuda(ModuleType):
    """The functions a plan needs; `copies` and `calls` tell what was done."""

    cudaStreamNonBlocking = 1  # noqa: N815 - its name
    cudaMemcpyKind = IntEnum("cudaMemcpyKind", _KINDS)  # noqa: N815
    cudaStreamCaptureMode = IntEnum(  # noqa: N815
        "cudaStreamCaptureMode",
        ["cudaStreamCaptureModeGlobal", "cudaStreamCaptureModeThreadLocal", "cudaStreamCaptureModeRelaxed"],
        start=0,
    )
    now: Cuda  # the last one made, which the fake TensorRT runs on

    def __init__(self, *, devices: int = 1, memory: int = 1 << 20) -> None:
        super().__init__("cuda.bindings.runtime")
        self.devices, self.memory = devices, memory
        self.held: dict[int, tuple[str, int, Any]] = {}  # address: kind, size, what keeps it
        self.streams: list[int] = []
        self.graphs: dict[int, list[Work]] = {}
        self.copies: list[tuple[str, int]] = []
        self.calls: Counter[str] = Counter()
        self.capturing: list[Work] | None = None
        self.can_capture = True
        self.last_error = Error.cudaSuccess
        self._waiting: list[Work] = []
        self._invalid = False
        Cuda.now = self

    def put(self, work: Work) -> None:
        """On the one stream there is, or into the graph that is being captured."""
        (self._waiting if self.capturing is None else self.capturing).append(work)

    def check(self, where: str, address: int, size: int) -> None:
        """That these bytes are held, in memory of that kind."""
        assert any(
            kind == where and start <= address and address + size <= start + room
            for start, (kind, room, _) in self.held.items()
        ), f"{size} bytes at {address} are no {where} memory"

    def cudaGetDeviceCount(self) -> Answer:  # noqa: N802
        return self._failed(Error.cudaSuccess if self.devices else Error.cudaErrorNoDevice, self.devices)

    def cudaGetErrorString(self, error: Error) -> Answer:  # noqa: N802
        return (Error.cudaSuccess, _WORDS[error])

    def cudaGetLastError(self) -> Answer:  # noqa: N802
        error, self.last_error = self.last_error, Error.cudaSuccess
        return (error,)

    def cudaSetDevice(self, index: int) -> Answer:  # noqa: N802
        return self._failed(Error.cudaSuccess if index < self.devices else Error.cudaErrorNoDevice)

    def cudaGetDeviceProperties(self, _index: int) -> Answer:  # noqa: N802
        return (Error.cudaSuccess, SimpleNamespace(name=b"Fake GPU\0\0"))

    def cudaStreamCreateWithFlags(self, _flags: int) -> Answer:  # noqa: N802
        self.streams.append(7)
        return (Error.cudaSuccess, 7)

    def cudaStreamDestroy(self, stream: int) -> Answer:  # noqa: N802
        self._work_off()
        self.streams.remove(stream)
        return (Error.cudaSuccess,)

    def cudaStreamSynchronize(self, stream: int) -> Answer:  # noqa: N802
        assert stream in self.streams
        if self.capturing is not None:
            return self._unsupported()
        self.calls["synchronize"] += 1
        self._work_off()
        return (Error.cudaSuccess,)

    def cudaMalloc(self, size: int) -> Answer:  # noqa: N802
        return self._allocated("device", size)

    def cudaMallocHost(self, size: int) -> Answer:  # noqa: N802
        return self._allocated("host", size)

    def cudaFree(self, address: int) -> Answer:  # noqa: N802
        self._work_off()  # as freeing does
        assert self.held.pop(address)[0] == "device"
        return (Error.cudaSuccess,)

    def cudaFreeHost(self, address: int) -> Answer:  # noqa: N802
        self._work_off()
        assert self.held.pop(address)[0] == "host"
        return (Error.cudaSuccess,)

    def cudaMemGetInfo(self) -> Answer:  # noqa: N802
        used = sum(size for _, size, _ in self.held.values())
        return (Error.cudaSuccess, (1 << 30) - used, 1 << 30)

    def cudaMemcpyAsync(self, to: int, source: int, size: int, kind: Any, stream: int) -> Answer:  # noqa: N802
        assert stream in self.streams
        name = kind.name.removeprefix("cudaMemcpy")
        giver, taker = name.lower().split("to")
        self.calls["copy"] += 1

        def work() -> None:
            self.check(giver, source, size)
            self.check(taker, to, size)
            self.copies.append((name, size))
            ctypes.memmove(to, source, size)

        self.put(work)
        return (Error.cudaSuccess,)

    def cudaStreamBeginCapture(self, stream: int, mode: Any) -> Answer:  # noqa: N802
        assert stream in self.streams
        assert mode in self.cudaStreamCaptureMode
        assert self.capturing is None
        if not self.can_capture:
            return self._failed(Error.cudaErrorStreamCaptureUnsupported)
        self.capturing, self._invalid = [], False
        return (Error.cudaSuccess,)

    def cudaStreamEndCapture(self, _stream: int) -> Answer:  # noqa: N802
        captured, self.capturing = self.capturing, None
        assert captured is not None
        if self._invalid:
            return self._failed(Error.cudaErrorStreamCaptureInvalidated, None)
        return (Error.cudaSuccess, captured)

    def cudaGraphInstantiate(self, graph: list[Work], flags: int) -> Answer:  # noqa: N802
        assert flags == 0
        self.graphs[id(graph)] = graph
        return (Error.cudaSuccess, id(graph))

    def cudaGraphDestroy(self, graph: list[Work]) -> Answer:  # noqa: N802
        assert isinstance(graph, list)
        return (Error.cudaSuccess,)

    def cudaGraphLaunch(self, handle: int, stream: int) -> Answer:  # noqa: N802
        assert stream in self.streams
        self.calls["launch"] += 1
        self._waiting += self.graphs[handle]
        return (Error.cudaSuccess,)

    def cudaGraphExecDestroy(self, handle: int) -> Answer:  # noqa: N802
        del self.graphs[handle]
        return (Error.cudaSuccess,)

    def invalidate(self) -> None:
        """What a forbidden call does to the graph that is being captured."""
        self._invalid = True

    def _unsupported(self) -> Answer:
        self.invalidate()
        return self._failed(Error.cudaErrorStreamCaptureUnsupported)

    def _allocated(self, where: str, size: int) -> Answer:
        if self.capturing is not None:
            return self._unsupported()
        if size > self.memory:
            return self._failed(Error.cudaErrorMemoryAllocation, None)
        memory = ctypes.create_string_buffer(size + ALIGNMENT)
        address = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
        self.held[address] = (where, size, memory)
        return (Error.cudaSuccess, address)

    def _failed(self, error: Error, *values: Any) -> Answer:
        self.last_error = error or self.last_error
        return (error, *values)

    def _work_off(self) -> None:
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            work()
