"""The GPUs of this machine, asked of the driver's own library: no Python package, no CUDA context."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

DRIVER = "libcuda.so.1"
# Of the driver API's `CUdevice_attribute`.
_MAJOR, _MINOR = 75, 76


@dataclass(frozen=True)
class Gpu:
    """One device; `capability` as NVIDIA writes it, e.g. 8.9."""

    name: str
    capability: str


def gpus() -> tuple[Gpu, ...]:
    """In CUDA's order, CUDA_VISIBLE_DEVICES heeded; none where there is no driver."""
    driver = _driver()
    if driver is None or driver.cuInit(0) != 0:
        return ()
    count = ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    return tuple(_gpu(driver, index) for index in range(count.value))


def _driver() -> Any:
    try:
        return ctypes.CDLL(DRIVER)
    except OSError:
        return None


def _gpu(driver: Any, index: int) -> Gpu:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, len(name), device)
    version = []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        version.append(str(value.value))
    return Gpu(name.value.decode(), ".".join(version))
