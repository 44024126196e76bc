"""What `preprocess` makes and `crop` reads, against the detector between them."""

from __future__ import annotations

from collections.abc import Iterator

from tricade.crop import Crop
from tricade.preprocess import Preprocess, PreprocessSettings

from . import register
from .finding import Finding, error
from .flow import Flow, Step, flows
from .repository import CONFIG, Model, Repository, tensors_of

TENSOR = "TENSOR"


def check(repository: Repository) -> Iterator[Finding]:
    for flow in flows(repository):
        for step, stage in flow.staged(Preprocess):
            yield from _tensor_of(step.model, stage.settings)
            for detector in flow.users(step, TENSOR):
                yield from _count(step.model, stage.settings, detector)
        for step, stage in flow.staged(Crop):
            yield from _crop(flow, step, stage)


def _tensor_of(model: Model, settings: PreprocessSettings) -> Iterator[Finding]:
    made = tensors_of(model.config.output).get(TENSOR)
    if made and made.dims[1:3] not in (settings.size, (-1, -1)):
        yield error(
            model.name,
            f"expected parameter size to be height and width of its {TENSOR} {list(made.dims)}; "
            f"got {_pair(settings.size)}",
            model.rebuild,
        )


def _count(model: Model, settings: PreprocessSettings, detector: Model) -> Iterator[Finding]:
    """Without tiles each image is one row of the detector's batch."""
    name = "max_images" if settings.max_tiles is None else "max_tiles"
    most = settings.max_images if settings.max_tiles is None else settings.max_tiles
    limit = detector.config.max_batch_size
    if limit and most > limit:
        yield error(
            model.name,
            f"expected a {name} of at most {limit}, the max_batch_size of {detector.name}; got {most}",
            f"lower it, or {model.rebuild}",
        )


def _crop(flow: Flow, step: Step, stage: Crop) -> Iterator[Finding]:
    model, settings = step.model, stage.settings
    detector = flow.source(step, stage.finder.tensor)
    tensor = tensors_of(detector.config.input).get(TENSOR) if detector else None
    if detector and tensor and tensor.dims[-3:-1] not in (settings.size, (-1, -1)):
        yield error(
            model.name,
            f"expected parameter size to be height and width of {detector.name}'s {TENSOR} {list(tensor.dims)}; "
            f"got {_pair(settings.size)}",
            model.rebuild,
        )
    for _, other in flow.staged(Preprocess):
        if other.settings.resize != settings.resize:
            yield error(
                model.name,
                f"expected parameter resize as preprocess has it, {other.settings.resize}; got {settings.resize}",
                f"correct it in {CONFIG}, or {model.rebuild}",
            )


def _pair(size: tuple[int, int]) -> str:
    return f"{size[0]},{size[1]}"


register(check)
