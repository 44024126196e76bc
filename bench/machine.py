"""What was measured on and with: a table without it says nothing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tricade.gpu import gpus
from tricade.onnx_network import cores

from .peers.served import BIN

HERE = ("nvidia-pytriton", "onnxruntime", "numpy", "opencv-python-headless", "pillow", "tritonclient", "rapidocr")
THERE = ("bentoml", "fastapi", "litserve", "mosec", "nvidia-pytriton", "onnxruntime", "uvicorn")
BUSY = 0.25  # of a core: from this load on the machine is not quiet


def machine() -> dict[str, Any]:
    """The machine, now."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": round(memory, 1),
        "gpus": [str(gpu) for gpu in gpus()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def versions(*, peers: bool) -> dict[str, dict[str, str]]:
    """Of the packages here and, with `peers`, of those in their environment."""
    found = {"here": {name: _version(name) for name in HERE}}
    if peers:
        ask = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
        told = subprocess.run([BIN / "python", "-c", ask, *THERE], check=True, capture_output=True, text=True)
        found["peers"] = json.loads(told.stdout)
    return found


def warning(load: float) -> list[str]:
    """Why figures measured under this load of the last minute are not to be trusted, where they are not."""
    if load < BUSY:
        return []
    return [f"This machine was busy before the start (load {load:.1f} on {cores()} cores): take no figure from here."]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
