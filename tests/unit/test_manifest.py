"""`tricade.manifest`: whether a plan fits a machine, in a sentence; and the machine's GPUs as the driver tells them."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import pytest

from tricade import gpu
from tricade.gpu import Gpu, gpus
from tricade.manifest import Here, manifest_from, misfit, sha256_of

SHA256 = "ab" * 32


def manifest(**engine: Any) -> dict[str, Any]:
    entry = {"target": "tensorrt", "version": "10.13.0", "capabilities": ["8.9"], "gpu": "NVIDIA L4", **engine}
    return {"model.onnx": {"sha256": "0"}, "model.plan": {"sha256": SHA256, "engine": entry}}


def here(version: str = "10.13.0", capability: str = "8.9", sha256: str = SHA256) -> Here:
    return Here({"tensorrt": version} if version else {}, capability, sha256)


@pytest.mark.parametrize("version", ["10.13.0", "10.13.0.35", "10.13.0.post1"])
def test_what_fits(version: str) -> None:
    assert misfit(manifest(), here(version)) == ""
    assert misfit(manifest(capabilities=["8.6", "8.9"]), here()) == ""


@pytest.mark.parametrize(
    ("built", "found", "said"),
    [
        (manifest(), here("10.13.2"), "model.plan was built by tensorrt 10.13.0, here is tensorrt 10.13.2"),
        (manifest(), here("8.6.0"), "model.plan was built by tensorrt 10.13.0, here is tensorrt 8.6.0"),
        (manifest(), here(""), "model.plan was built by tensorrt 10.13.0, here is nothing that runs plans"),
        (
            manifest(target="tensorrt-rtx", version="1.7.1.116"),
            here(),
            "model.plan was built by tensorrt-rtx 1.7.1.116, here is tensorrt 10.13.0",
        ),
        (
            manifest(),
            here(capability="9.0"),
            "model.plan was built for compute capability 8.9 (NVIDIA L4), this GPU has 9.0",
        ),
        (
            manifest(capabilities=["8.6", "12.0"], gpu=""),
            here(),
            "model.plan was built for compute capability 8.6 or 12.0, this GPU has 8.9",
        ),
        (
            manifest(),
            here(capability=""),
            "model.plan was built for compute capability 8.9 (NVIDIA L4), this machine has no GPU",
        ),
        (
            manifest(),
            here(sha256="cd" * 32),
            "model.plan is damaged or was replaced: its sha256 is cdcdcdcdcdcd, manifest.json says abababababab",
        ),
        ({}, here(), "manifest.json does not say what model.plan was built for"),
        ({"model.plan": {"sha256": SHA256, "engine": None}}, here(), "manifest.json does not say what model.plan was"),
        ({"model.plan": []}, here(), "manifest.json does not say what model.plan was built for"),
    ],
)
def test_a_misfit_names_both_sides(built: dict[str, Any], found: Here, said: str) -> None:
    why = misfit(built, found)

    assert why.startswith(said)
    assert why.endswith("; run here: tricade build")
    assert "\n" not in why


@pytest.mark.parametrize("data", [None, b"", b"[1]", b"\xff", b"{"])
def test_a_manifest_that_cannot_be_read_says_nothing(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "manifest.json").write_bytes(data)

    assert manifest_from(tmp_path) == {}


def test_a_manifest_is_read_by_file(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(manifest()))
    (tmp_path / "model.plan").write_bytes(b"plan")

    assert manifest_from(tmp_path) == manifest()
    assert sha256_of(tmp_path / "model.plan") == "64879f7d6b960a01909762d911a32d4582c20010c5641ee90278b644a9e3b525"


class Driver:
    """As much of libcuda as `gpus` asks."""

    def __init__(self, *devices: Gpu, starts: bool = True) -> None:
        self.devices, self.starts = devices, starts

    def cuInit(self, _flags: int) -> int:  # noqa: N802
        return 0 if self.starts else 100

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.devices)
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:  # noqa: N802
        device._obj.value = index
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: ctypes.c_int) -> int:  # noqa: N802
        name.value = self.devices[device.value].name.encode()[: size - 1]
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: ctypes.c_int) -> int:  # noqa: N802
        value._obj.value = int(self.devices[device.value].capability.split(".")[attribute - 75])
        return 0


@pytest.mark.parametrize(
    ("driver", "found"),
    [
        (None, ()),
        (Driver(starts=False), ()),
        (Driver(), ()),
        (Driver(Gpu("NVIDIA L4", "8.9"), Gpu("NVIDIA H200", "9.0")), (Gpu("NVIDIA L4", "8.9"), Gpu("NVIDIA H200", "9.0"))),
    ],
)  # fmt: skip
def test_gpus_are_as_the_driver_says(driver: Driver | None, found: tuple[Gpu, ...], monkeypatch: Any) -> None:
    monkeypatch.setattr(gpu, "_driver", lambda: driver)

    assert gpus() == found


def test_a_machine_without_the_drivers_library_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "DRIVER", "libnosuchdriver.so.1")

    assert gpus() == ()
