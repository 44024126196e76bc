"""A model repository as it lies on disk, read without judging it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig

from tricade.stage import ModelSpec, Stage, Tensor, spec_from_config
from tricade.versions import versions

from ..local import STAGES
from ..manifest import MANIFEST
from ..placement import owner_of
from .graph import Graph
from .stage_settings import loaded

CONFIG = "config.pbtxt"
FALLBACK = Path("configs") / "onnxruntime.pbtxt"
_COMMAND = re.compile(r"`(tricade build [^`]+)`")


@dataclass(frozen=True)
class Unread:
    """A configuration that is not one, and why."""

    why: str


@dataclass(frozen=True)
class Model:
    """One folder whose configuration could be read. What lies beside it is read when it is first asked for."""

    name: str
    folder: Path
    config: Any

    @property
    def is_ensemble(self) -> bool:
        return self.config.platform == "ensemble" or self.config.HasField("ensemble_scheduling")

    @property
    def is_plan(self) -> bool:
        return self.config.platform == "tensorrt_plan" or self.config.backend == "tensorrt"

    @property
    def is_network(self) -> bool:
        return self.is_plan or self.config.platform == "onnxruntime_onnx" or self.config.backend == "onnxruntime"

    @cached_property
    def owner(self) -> str | None:
        """The pipeline whose build wrote it."""
        return owner_of(self.folder)

    @cached_property
    def rebuild(self) -> str:
        """What to do where the configuration is not as a build writes it."""
        first_line = (self.folder / CONFIG).read_text(encoding="utf-8").partition("\n")[0]
        found = _COMMAND.search(first_line)
        return f"run: {found.group(1)}" if found else f"correct its {CONFIG}"

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """Ascending: Triton serves the last, those before are there to go back to."""
        return versions(self.folder)

    @property
    def version_folder(self) -> Path | None:
        """The one that is served."""
        return self.folder / str(self.versions[-1]) if self.versions else None

    @cached_property
    def fallback(self) -> Any:
        """The configuration for ONNX Runtime, `Unread`, or None where there is none."""
        file = self.folder / FALLBACK
        return _parsed(file) if file.exists() else None

    @property
    def onnx_config(self) -> Any:
        """The configuration that ONNX Runtime is given."""
        return self.config if self.fallback is None or isinstance(self.fallback, Unread) else self.fallback

    @property
    def plan_file(self) -> Path | None:
        return self._file(self.config.default_model_filename or "model.plan") if self.is_plan else None

    @property
    def onnx_file(self) -> Path | None:
        name = "" if self.onnx_config is self.config and self.is_plan else self.onnx_config.default_model_filename
        return self._file(name or "model.onnx")

    @cached_property
    def graph(self) -> Graph | None:
        """The ONNX file's, without weights that lie in other files; None where there is no file."""
        return Graph.read(self.onnx_file) if self.is_network and self.onnx_file else None

    @cached_property
    def records(self) -> Mapping[str, Mapping[str, Any]] | Unread:
        """What the manifest says, by file name; nothing where there is no manifest."""
        file = self._file(MANIFEST)
        if file is None:
            return {}
        try:
            data = json.loads(file.read_bytes())
        except (OSError, ValueError) as error:
            return Unread(str(error))
        if not isinstance(data, dict) or not all(isinstance(record, dict) for record in data.values()):
            return Unread("it holds no record for each file")
        return data

    @cached_property
    def spec(self) -> ModelSpec:
        """As a stage sees it."""
        config = {
            "name": self.name,
            "input": [_entry(tensor) for tensor in self.config.input],
            "output": [_entry(tensor) for tensor in self.config.output],
            "max_batch_size": self.config.max_batch_size,
            "parameters": {name: {"string_value": p.string_value} for name, p in self.config.parameters.items()},
        }
        return spec_from_config(config, directory=self.folder, version=self.versions[-1] if self.versions else 1)

    @cached_property
    def stage(self) -> tuple[Stage | None, tuple[str, ...]]:
        """What Triton would hold, and what is wrong with its settings; nothing for a model that is no stage."""
        kind = STAGES.get(self.config.backend)
        return loaded(kind, self.spec) if kind else (None, ())

    def _file(self, name: str) -> Path | None:
        file = self.version_folder / name if self.version_folder else None
        return file if file and file.is_file() else None


@dataclass(frozen=True)
class Repository:
    """All models by their folder's name; `unread` are those whose configuration is none."""

    folder: Path
    models: Mapping[str, Model]
    unread: Mapping[str, Unread]

    @property
    def ensembles(self) -> list[Model]:
        return [model for model in self.models.values() if model.is_ensemble]

    @property
    def networks(self) -> list[Model]:
        return [model for model in self.models.values() if model.is_network]

    def __len__(self) -> int:
        return len(self.models) + len(self.unread)


def read(folder: Path) -> Repository:
    """Hidden folders, and those without a configuration, are no models."""
    folders = [path for path in sorted(folder.glob("*")) if path.is_dir() and not path.name.startswith(".")]
    configs = {path.name: _parsed(path / CONFIG) for path in folders if (path / CONFIG).exists()}
    return Repository(
        folder=folder,
        models={
            name: Model(name, folder / name, config)
            for name, config in configs.items()
            if not isinstance(config, Unread)
        },
        unread={name: config for name, config in configs.items() if isinstance(config, Unread)},
    )


def tensors_of(entries: Iterable[Any]) -> dict[str, Tensor]:
    """A configuration's inputs or outputs by name, dims without the batch."""
    return {entry.name: Tensor(entry.name, _dtype(entry), tuple(entry.dims)) for entry in entries}


def _entry(tensor: Any) -> dict[str, Any]:
    return {"name": tensor.name, "data_type": DataType.Name(tensor.data_type), "dims": list(tensor.dims)}


def _dtype(tensor: Any) -> str:
    name: str = DataType.Name(tensor.data_type)
    return name.removeprefix("TYPE_")


def _parsed(file: Path) -> Any:
    try:
        return text_format.Parse(file.read_text(encoding="utf-8"), ModelConfig())
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        return Unread(str(error))
