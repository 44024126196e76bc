"""`triton_python_backend_utils` as Triton's Python stub has it, as much of it as a network's edge needs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tricade import dlpack

CODES = ("UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED")
_USED = b"used_dlpack"


class Tensor:
    """On the host with an array, on the GPU with what a capsule held, whose deleter is called at the end."""

    def __init__(self, name: str, array: Any) -> None:
        self._name, self._array = name, array
        self._deleter: Any = None

    @classmethod
    def from_dlpack(cls, name: str, capsule: Any) -> Tensor:
        tensor = cls(name, dlpack.array_from(capsule))
        address = dlpack._pointer(id(capsule), b"dltensor")
        deleter = dlpack._Managed.from_address(address).deleter
        tensor._deleter = lambda: deleter(address)
        ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), ctypes.c_char_p(_USED))
        return tensor

    def name(self) -> str:
        return self._name

    def is_cpu(self) -> bool:
        return not isinstance(self._array, dlpack.DeviceArray)

    def as_numpy(self) -> Any:
        assert self.is_cpu(), "Tensor is stored in GPU and cannot be converted to NumPy."
        return self._array

    def to_dlpack(self) -> Any:
        return dlpack.capsule_from(self._array)

    @property
    def raw(self) -> Any:
        return self._array

    def __del__(self) -> None:
        if self._deleter:
            self._deleter()


class TritonError:
    """A message and its code."""

    def __init__(self, message: str, code: str) -> None:
        self.words, self.code = message, code


@dataclass
class Response:
    outputs: Sequence[Tensor] = ()
    error: TritonError | None = None

    def values(self) -> dict[str, Any]:
        assert self.error is None, self.error.words
        return {tensor.name(): tensor.raw for tensor in self.outputs}


@dataclass
class Request:
    tensors: dict[str, Any]
    wanted: Sequence[str]

    def inputs(self) -> list[Tensor]:
        return [Tensor(name, array) for name, array in self.tensors.items()]

    def requested_output_names(self) -> Sequence[str]:
        return self.wanted


@dataclass
class Log:
    lines: list[tuple[str, str]] = field(default_factory=list)

    def log_info(self, line: str) -> None:
        self.lines.append(("info", line))

    def log_warn(self, line: str) -> None:
        self.lines.append(("warning", line))

    def log_error(self, line: str) -> None:
        self.lines.append(("error", line))


def stub() -> ModuleType:
    """The module; `Logger.lines` is what was logged."""
    module = ModuleType("triton_python_backend_utils")
    for code in CODES:
        setattr(TritonError, code, code)
    module.Tensor, module.TritonError, module.Logger = Tensor, TritonError, Log()
    module.InferenceResponse = Response
    return module
