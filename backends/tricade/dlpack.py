"""Arrays on the GPU, and DLPack, by which Triton gives and takes them; needs neither torch nor CUDA.

The structures are those of `dlpack.h`, version 0. A capsule is called `dltensor` until somebody takes it; whoever
took it calls the deleter. Triton does so once it has copied the tensor, before it asks for the next execution.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .errors import BadRequest

CUDA = 2  # kDLCUDA
_NAME = b"dltensor"
# numpy's letter for a kind of number: DLPack's code.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """Memory on a GPU, row after row, as much like numpy's arrays as a network needs; `owner` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device_id: int
    owner: object = field(repr=False)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> DeviceArray:
        start, end, _ = rows.indices(len(self))
        stride = math.prod(self.shape[1:]) * self.dtype.itemsize
        return replace(self, address=self.address + start * stride, shape=(end - start, *self.shape[1:]))

    def __array__(self, *_: Any) -> Any:
        raise TypeError("the array lies on a GPU, numpy needs it on the host; set FORCE_CPU_ONLY_INPUT_TENSORS to yes")


class _Where(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("where", _Where),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_python = ctypes.pythonapi
_new, _pointer, _is_valid = _python.PyCapsule_New, _python.PyCapsule_GetPointer, _python.PyCapsule_IsValid
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# A capsule is passed by its address: one that is just going away must not be referred to again.
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]

# Addresses of structures that are out, and what they need until their deleter is called.
_out: dict[int, tuple[Any, ...]] = {}


def _give_back(managed: int) -> None:
    _out.pop(managed, None)


def _drop(capsule: int) -> None:
    if _is_valid(capsule, _NAME):  # nobody took it
        _give_back(_pointer(capsule, _NAME))


_DELETE, _DROP = _Deleter(_give_back), _Deleter(_drop)


def array_from(capsule: Any) -> DeviceArray:
    """What a capsule describes, which stays this array's; `BadRequest` where its rows do not lie in order."""
    tensor = _Managed.from_address(_pointer(id(capsule), _NAME)).tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides and tuple(tensor.strides[: tensor.ndim]) != _strides(shape):
        raise BadRequest(f"a tensor on the GPU has strides {tensor.strides[: tensor.ndim]}; rows in order are expected")
    dtype = np.dtype(f"{_KINDS.get(tensor.dtype.code, 'V')}{tensor.dtype.bits // 8}")
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, dtype, tensor.where.index, owner=capsule)


def capsule_from(array: DeviceArray) -> Any:
    """A capsule that holds the array until whoever takes it calls its deleter, or until it is dropped."""
    shape = (ctypes.c_int64 * len(array.shape))(*array.shape)
    dtype = _Type(_CODES[array.dtype.kind], array.dtype.itemsize * 8, 1)
    tensor = _Tensor(array.address, _Where(CUDA, array.device_id), len(shape), dtype, shape, None, 0)
    managed = _Managed(tensor, None, _DELETE)
    _out[ctypes.addressof(managed)] = (managed, shape, array)
    return _new(ctypes.addressof(managed), _NAME, ctypes.cast(_DROP, ctypes.c_void_p))


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Steps from one element to the next in each dimension, in elements, where all lie in order."""
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
