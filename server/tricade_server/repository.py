"""What a rendered repository holds: its models, and in which order they are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from .errors import BadRepository

FALLBACK = Path("configs") / "onnxruntime.pbtxt"


@dataclass(frozen=True)
class ServedModel:
    """One folder of the repository."""

    name: str
    folder: Path
    config: Any

    @property
    def is_ensemble(self) -> bool:
        return bool(self.config.ensemble_scheduling.step)

    @property
    def is_plan(self) -> bool:
        return bool(self.config.platform == "tensorrt_plan")

    @property
    def version(self) -> int:
        """The version Triton serves: the highest."""
        return max((int(path.name) for path in self.folder.iterdir() if path.name.isdigit()), default=0)

    @property
    def plan(self) -> Path:
        return self.folder / str(self.version) / (self.config.default_model_filename or "model.plan")

    def fallback(self) -> str:
        """The configuration for ONNX Runtime as JSON, as Triton's load request takes it."""
        config = _parsed(self.folder / FALLBACK)
        file = self.folder / str(self.version) / config.default_model_filename
        if not file.is_file():
            raise BadRepository(
                f"{self.name} has no {file.name} in version {self.version} to fall back to; run: tricade build"
            )
        text: str = json_format.MessageToJson(config, preserving_proto_field_name=True)
        return text


def read_repository(repository: Path) -> list[ServedModel]:
    """All models, networks and stages before the ensembles that need them; raises `BadRepository`."""
    if not repository.is_dir():
        raise BadRepository(f"{repository} is not a folder; run: tricade build PIPELINE --repository {repository}")
    folders = [path for path in sorted(repository.iterdir()) if (path / "config.pbtxt").is_file()]
    models = [ServedModel(path.name, path, _parsed(path / "config.pbtxt")) for path in folders]
    if not any(model.is_ensemble for model in models):
        raise BadRepository(f"{repository} holds no pipeline; run: tricade build PIPELINE --repository {repository}")
    for model in models:
        if model.version == 0:
            raise BadRepository(f"{model.folder} has no version folder (1/); run: tricade build")
    return sorted(models, key=lambda model: model.is_ensemble)


def _parsed(file: Path) -> Any:
    try:
        return text_format.Parse(file.read_text(encoding="utf-8"), ModelConfig())
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        raise BadRepository(f"{file} is not a model configuration: {error}") from error
