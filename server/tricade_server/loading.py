"""Loading a repository: networks and stages at once, then the ensembles; what does not fit falls back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO

from PIL import Image

from .control import Control
from .errors import BadRepository, LoadFailed
from .repository import ServedModel

Say = Callable[[str], None]


@dataclass(frozen=True)
class Loaded:
    """How a model runs; `why` is empty where it runs as it was built."""

    model: str
    why: str = ""


def load_all(control: Control, models: Sequence[ServedModel], say: Say) -> list[Loaded]:
    """Load everything; raises `LoadFailed` naming the first model that cannot be served."""
    steps = [model for model in models if not model.is_ensemble]
    with ThreadPoolExecutor(max(1, len(steps))) as pool:
        loaded = list(pool.map(lambda model: _load(control, model), steps))
    for result in loaded:
        if result.why:
            say(f"{result.model} runs on ONNX Runtime: {result.why}")
    for model in models:
        if model.is_ensemble:
            control.load(model.name)
            control.warm_up(model.name, _blank_picture())
            loaded.append(Loaded(model.name))
    return loaded


def _load(control: Control, model: ServedModel) -> Loaded:
    if not model.is_plan:
        _load_or_say_which(control, model.name)
        return Loaded(model.name)
    why = "" if model.plan.is_file() else f"there is no {model.plan.name} in version {model.version}"
    if not why:
        try:
            control.load(model.name)
            return Loaded(model.name)
        except LoadFailed as error:
            why = " ".join(str(error).split())
    try:
        _load_or_say_which(control, model.name, model.fallback())
    except BadRepository as error:
        raise LoadFailed(f"{why}, and {error}") from error
    return Loaded(model.name, why)


def _load_or_say_which(control: Control, model: str, config: str | None = None) -> None:
    try:
        control.load(model, config)
    except LoadFailed as error:
        raise LoadFailed(f"{model} cannot be loaded: {error}") from error


def _blank_picture() -> bytes:
    file = BytesIO()
    Image.new("RGB", (64, 64), "grey").save(file, "PNG")
    return file.getvalue()
