"""What a plan meets on this machine: the TensorRT that would run it, and the GPU."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tricade.gpu import gpus
from tricade.manifest import Here, manifest_from, misfit, sha256_of

# NVIDIA's image has TensorRT as a library, without its Python package.
_LIBRARIES = ("libnvinfer.so.11", "libnvinfer.so.10", "libnvinfer.so.8", "libnvinfer.so")


def misfit_of(plan: Path) -> str:
    """Why a plan must not be loaded here, in one sentence; "" where it may be."""
    if not plan.is_file():
        return f"there is no {plan.name} in version {plan.parent.name}"
    devices = gpus()
    tensorrt = tensorrt_version()
    here = Here(
        packages={"tensorrt": tensorrt} if tensorrt else {},
        capability=devices[0].capability if devices else "",
        sha256=sha256_of(plan),
    )
    return misfit(manifest_from(plan.parent), here, file=plan.name)


def tensorrt_version() -> str:
    """Of the Python package or, without it, of the library; "" where there is neither."""
    with suppress(PackageNotFoundError):
        return version("tensorrt")
    for name in _LIBRARIES:
        with suppress(OSError, AttributeError):
            return version_from_number(int(ctypes.CDLL(name).getInferLibVersion()))
    return ""


def version_from_number(number: int) -> str:
    """`NV_TENSORRT_VERSION`: 8601 is 8.6.1, from 10 on 101303 is 10.13.3."""
    if number < 10_000:
        return f"{number // 1000}.{number // 100 % 10}.{number % 100}"
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"
