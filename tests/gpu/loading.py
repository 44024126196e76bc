"""Loads fake engines as if they were deserialized from plan files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tricade import cuda, engine
from tricade.plan_network import PlanNetwork

from .fake_cuda import Cuda
from .fakes import Engine, specification, tensorrt
from .manifests import record


def crops(rows: int, width: int = 4) -> Any:
    return np.arange(rows * 2 * width * 3, dtype=np.uint8).reshape(rows, 2, width, 3)


def sums(given: Any) -> Any:
    """What `fakes.classifier` answers as INDEX."""
    return given.sum(axis=(1, 2, 3), dtype=np.int32)[:, None]


class Loader:
    """Where `tensorrt` and CUDA's bindings are fakes; `cuda` is the latter."""

    def __init__(self, monkeypatch: Any, folder: Path) -> None:
        self._monkeypatch, self._folder = monkeypatch, folder
        self.cuda = Cuda()
        monkeypatch.setitem(sys.modules, cuda.BINDINGS, self.cuda)
        file = folder / "1" / "model.plan"
        file.parent.mkdir()
        file.write_bytes(b"plan")
        record(file, file.read_bytes())  # by which contexts may share its profiles, as `tricade build` leaves it

    def __call__(self, made: Engine | None, *, package: ModuleType | None = None, **changes: Any) -> PlanNetwork:
        """A network of that engine; parameters without their `plan.` as `switches`."""
        switches = changes.pop("switches", {})
        changes = {"parameters": {f"plan.{name}": value for name, value in switches.items()}, **changes}
        self._monkeypatch.setitem(sys.modules, "tensorrt", package or tensorrt(made))
        engine.tensorrt.cache_clear()
        return PlanNetwork.load(specification(self._folder, **changes))


def loader(monkeypatch: Any, folder: Path) -> Iterator[Loader]:
    """For a fixture."""
    yield Loader(monkeypatch, folder)
    engine.tensorrt.cache_clear()
