"""What `crop` and `turn` know of the classifiers they feed, against those models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tricade.crop import Crop
from tricade.turn import Turn

from . import register
from .finding import Finding, error, warning
from .repository import Model, Repository, tensors_of

CROPS = "CROPS"


@dataclass(frozen=True)
class Sender:
    """A stage's settings for one classifier; `prefix` is in front of the parameters' names."""

    stage: Model
    prefix: str
    network: Model
    height: int
    width: int
    widths: tuple[int, ...]
    max_batch: int
    answers: tuple[str, ...]


def check(repository: Repository) -> Iterator[Finding]:
    for model in repository.models.values():
        for sender in _senders(model, repository):
            yield from _batch(sender)
            yield from _crops(sender)
            yield from _answers(sender)


def _senders(model: Model, repository: Repository) -> Iterator[Sender]:
    stage = model.stage[0]
    settings = {f"{name}.": target for name, target in stage.targets.items()} if isinstance(stage, Crop) else {}
    known = settings | ({"": stage.settings} if isinstance(stage, Turn) else {})
    for prefix, each in known.items():
        network = repository.models.get(each.model)
        if network:
            yield Sender(model, prefix, network, *each.size, each.widths or (), each.max_batch, each.answers)


def _batch(sender: Sender) -> Iterator[Finding]:
    mine, theirs = sender.max_batch, sender.network.config.max_batch_size
    if mine != theirs:
        report = error if mine > theirs else warning
        yield report(
            sender.stage.name,
            f"expected parameter {sender.prefix}max_batch to be {theirs}, the max_batch_size of "
            f"{sender.network.name}; got {mine}",
            f"correct one of them, or {sender.stage.rebuild}",
        )


def _crops(sender: Sender) -> Iterator[Finding]:
    network = sender.network
    inputs = tensors_of(network.config.input)
    crops = inputs.get(CROPS)
    if crops is None or len(crops.dims) != 3:
        yield error(
            network.name,
            f"expected an input {CROPS} [height, width, 3], which {sender.stage.name} sends; "
            f"got {', '.join(f'{name} {list(tensor.dims)}' for name, tensor in inputs.items()) or 'none'}",
            network.rebuild,
        )
        return
    height, width, _ = crops.dims
    for parameter, given, fits in (
        ("size", (sender.height, sender.width), height in (-1, sender.height) and width in (-1, sender.width)),
        ("widths", sender.widths, all(width in (-1, step) for step in sender.widths)),
    ):
        if given and not fits:
            yield error(
                sender.stage.name,
                f"expected parameter {sender.prefix}{parameter} to fit {network.name}'s {CROPS} {list(crops.dims)}; "
                f"got {','.join(map(str, given))}",
                sender.stage.rebuild,
            )


def _answers(sender: Sender) -> Iterator[Finding]:
    given = tensors_of(sender.network.config.output)
    if missing := [name for name in sender.answers if name not in given]:
        yield error(
            sender.network.name,
            f"expected the output {missing[0]}, which {sender.stage.name} asks for; got {', '.join(given) or 'none'}",
            sender.network.rebuild,
        )


register(check)
