"""What a rendered repository holds: its models, and in which order they are loaded."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tricade.versions import latest, latest_folder

from .errors import BadRepository

CONFIG = "config.pbtxt"
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
    def version_folder(self) -> Path:
        """The one that Triton serves."""
        return latest_folder(self.folder)

    @property
    def plan(self) -> Path:
        return self.version_folder / (self.config.default_model_filename or "model.plan")

    def on_onnxruntime(self) -> ServedModel:
        """The same model there: its folder gets that configuration; raises `BadRepository`."""
        config = _parsed(self.folder / FALLBACK)
        file = self.version_folder / config.default_model_filename
        if not file.is_file():
            raise BadRepository(
                f"{self.name} has no {file.name} in version {latest(self.folder)} to fall back to; run: tricade build"
            )
        shutil.copyfile(self.folder / FALLBACK, self.folder / CONFIG)
        return replace(self, config=config)


def read_repository(repository: Path) -> list[ServedModel]:
    """All models, networks and stages before the ensembles that need them; raises `BadRepository`."""
    if not repository.is_dir():
        raise BadRepository(f"{repository} is not a folder; run: tricade build PIPELINE --repository {repository}")
    folders = [path for path in sorted(repository.iterdir()) if (path / CONFIG).is_file()]
    models = [ServedModel(path.name, path, _parsed(path / CONFIG)) for path in folders]
    if not any(model.is_ensemble for model in models):
        raise BadRepository(f"{repository} holds no pipeline; run: tricade build PIPELINE --repository {repository}")
    for model in models:
        if latest(model.folder) == 0:
            raise BadRepository(f"{model.folder} has no version folder (1/); run: tricade build")
    return sorted(models, key=lambda model: model.is_ensemble)


def _parsed(file: Path) -> Any:
    try:
        return text_format.Parse(file.read_text(encoding="utf-8"), ModelConfig())
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        raise BadRepository(f"{file} is not a model configuration: {error}") from error
