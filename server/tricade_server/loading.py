"""Loading a repository: networks and stages at once, then the ensembles; what does not fit falls back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

from google.protobuf import json_format
from PIL import Image

from .control import Control
from .errors import BadRepository, LoadFailed
from .machine import misfit_of
from .repository import ServedModel

Say = Callable[[str], None]


class Loader:
    """Loads the models of a repository, and one of them again when it has lost a process."""

    def __init__(self, control: Control, models: Sequence[ServedModel], say: Say) -> None:
        self._control, self._say = control, say
        self._models = {model.name: model for model in models}
        self._restarts: dict[str, int] = {}
        self.fell_back: dict[str, str] = {}  # networks that run on ONNX Runtime although they have a plan, and why

    def load_all(self) -> None:
        """Load and warm up everything; raises `LoadFailed` naming the first model that cannot be served."""
        steps = [model for model in self._models.values() if not model.is_ensemble]
        with ThreadPoolExecutor(max(1, len(steps))) as pool:
            reasons = list(pool.map(self._load_step, steps))
        for model, why in zip(steps, reasons, strict=True):
            if why:
                if model.plan.is_file():
                    self.fell_back[model.name] = why
                self._say(f"{model.name} runs on ONNX Runtime: {why}")
        for model in self._models.values():
            if model.is_ensemble:
                self._load(model.name)
                self._control.warm_up(model.name, _blank_picture())

    def reload(self, name: str) -> None:
        """Load a model afresh, all its instances; raises `LoadFailed`.

        Triton neither restarts a dead stub nor reloads a model whose configuration is the same, so this one
        differs in a parameter nobody reads.
        """
        self._restarts[name] = self._restarts.get(name, 0) + 1
        config = json_format.MessageToDict(self._models[name].config, preserving_proto_field_name=True)
        config.setdefault("parameters", {})["TRICADE_RESTARTS"] = {"string_value": str(self._restarts[name])}
        self._load(name, json.dumps(config))

    def _load_step(self, model: ServedModel) -> str:
        """Load a network or a stage; returns why it had to fall back."""
        if not model.is_plan:
            self._load(model.name)
            return ""
        why = misfit_of(model.plan)
        if not why:
            try:
                self._control.load(model.name)
                return ""
            except LoadFailed as error:
                why = " ".join(str(error).split())
        try:
            self._models[model.name] = model.on_onnxruntime()
        except BadRepository as error:
            raise LoadFailed(f"{model.name} cannot be loaded: {why}, and {error}") from error
        self._load(model.name)
        return why

    def _load(self, name: str, config: str | None = None) -> None:
        try:
            self._control.load(name, config)
        except LoadFailed as error:
            raise LoadFailed(f"{name} cannot be loaded: {error}") from error


def _blank_picture() -> bytes:
    file = BytesIO()
    Image.new("RGB", (64, 64), "grey").save(file, "PNG")
    return file.getvalue()
