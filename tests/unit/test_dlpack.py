"""DLPack's structures, against numpy's; and who frees what, when."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tricade import dlpack
from tricade.dlpack import DeviceArray, array_from, capsule_from
from tricade.errors import BadRequest

TYPES = [np.uint8, np.int8, np.int32, np.int64, np.float16, np.float32]


class Owner:
    """Something that can be watched."""


def lent(given: np.ndarray, owner: object = None) -> DeviceArray:
    """An array as if its memory were a GPU's."""
    return DeviceArray(given.ctypes.data, given.shape, given.dtype, 3, owner or given)


def as_numpy(array: DeviceArray) -> np.ndarray:
    """What numpy makes of its capsule."""

    class Giver:
        def __dlpack__(self, **_):
            return capsule_from(array)

        def __dlpack_device__(self):
            return dlpack.CUDA, 0

    return np.from_dlpack(Giver())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3), (4, 1, 2, 3)])
def test_numpy_reads_what_we_write(monkeypatch, dtype, shape):
    monkeypatch.setattr(dlpack, "CUDA", 1)  # numpy takes only the processor's
    given = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    found = as_numpy(lent(given))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1,), (2, 3), (4, 1, 2, 3)])
def test_we_read_what_numpy_writes(dtype, shape):
    given = np.zeros(shape, dtype)
    found = array_from(given.__dlpack__())
    assert (found.address, found.shape, found.dtype) == (given.ctypes.data, shape, dtype)
    assert (found.size, found.nbytes, len(found)) == (given.size, given.nbytes, shape[0])


def test_what_we_write_we_read(monkeypatch):
    given = np.zeros((2, 3), bool)  # numpy's own exchange knows no truth values before 1.25
    found = array_from(capsule_from(lent(given)))
    assert (found.address, found.shape, found.dtype, found.device_id) == (given.ctypes.data, (2, 3), bool, 3)


def test_rows_that_do_not_lie_in_order_are_refused():
    with pytest.raises(BadRequest, match=r"has strides \[1, 3\]; rows in order are expected"):
        array_from(np.zeros((2, 3)).T.__dlpack__())


def test_numpy_is_told_why_it_cannot_have_it():
    with pytest.raises(TypeError, match="lies on a GPU, numpy needs it on the host; set FORCE_CPU_ONLY_INPUT_TENSORS"):
        np.concatenate([lent(np.zeros((1, 2)))])


def test_rows_are_cut_out_like_numpy_s():
    given = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    part = lent(given)[1:3]
    assert (part.address, part.shape) == (given[1:3].ctypes.data, (2, 2, 3))


@pytest.mark.parametrize("taken", [True, False])
def test_the_owner_lives_as_long_as_the_capsule_or_who_took_it(monkeypatch, taken):
    monkeypatch.setattr(dlpack, "CUDA", 1)
    given, owner = np.zeros((2, 3)), Owner()
    watched = weakref.ref(owner)
    array = lent(given, owner)
    held = as_numpy(array) if taken else capsule_from(array)
    del array, owner
    gc.collect()
    assert watched() is not None
    assert len(dlpack._out) == 1
    del held
    gc.collect()
    assert watched() is None
    assert not dlpack._out


def test_a_capsule_that_is_read_is_kept():
    given = np.zeros((2, 3))
    watched = weakref.ref(given)
    found = array_from(given.__dlpack__())
    del given
    gc.collect()
    assert watched() is not None
    del found
    gc.collect()
    assert watched() is None
