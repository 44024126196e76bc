"""The record beside a network's weights: whether the files are the ones it is about, and fit this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tricade.gpu import gpus
from tricade.manifest import Here, misfit

from ..manifest import MANIFEST, sha256_of
from . import register
from .finding import Finding, error, warning
from .repository import CONFIG, Model, Repository, Unread

Record = Mapping[str, Any]  # as JSON: what another version wrote may lack any key


def check(repository: Repository) -> Iterator[Finding]:
    for model in repository.networks:
        if isinstance(model.records, Unread):
            yield warning(
                model.name,
                f"expected {MANIFEST} to record what each file was made from; {model.records.why}",
                model.rebuild,
            )
            continue
        for file, record in model.records.items():
            yield from _damage(model, file, record)
            yield from _unverified(model, file, record)
            if isinstance(engine := record.get("engine"), dict):
                yield from _batch(model, file, engine)
                yield from _machine(model, file, engine)


def _damage(model: Model, file: str, record: Record) -> Iterator[Finding]:
    assert model.version_folder  # the manifest lies there
    recorded, came = record.get("sha256"), sha256_of(model.version_folder / file)
    if recorded and came and recorded != came:
        yield error(
            model.name,
            f"expected {file} as {MANIFEST} records it, sha256 {str(recorded)[:12]}…; got {came[:12]}…: "
            "it was damaged or replaced",
            model.rebuild,
        )


def _unverified(model: Model, file: str, record: Record) -> Iterator[Finding]:
    if record.get("precision") in ("fp16", "int8") and not record.get("verification"):
        yield warning(
            model.name,
            f"expected {file}, in {record['precision']}, to have been compared with fp32; it has not",
            f"name pictures under verification.images in the pipeline file, and {model.rebuild}",
        )


def _batch(model: Model, file: str, engine: Record) -> Iterator[Finding]:
    largest = _largest_batch(engine.get("profile"))
    if largest is not None and model.config.max_batch_size > largest:
        yield error(
            model.name,
            f"expected a max_batch_size of {largest} at most, the largest batch {file} was built for; "
            f"got {model.config.max_batch_size}",
            f"lower it in {CONFIG}, or {model.rebuild}",
        )


def _largest_batch(profile: Any) -> int | None:
    """Out of the smallest, likeliest and largest shape of each input; None where they are not there."""
    try:
        return min(int(shapes[-1][0]) for shapes in profile.values())
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def _machine(model: Model, file: str, engine: Record) -> Iterator[Finding]:
    """An engine that does not fit is not an error: ONNX Runtime answers in its place."""
    target, built, capabilities = engine.get("target"), engine.get("version"), engine.get("capabilities")
    if not isinstance(target, str) or not isinstance(built, str) or not isinstance(capabilities, list):
        return
    found = [gpu.capability for gpu in gpus()] or capabilities  # what is not known here counts as fitting
    fitting = [capability for capability in found if capability in capabilities] or found
    here = Here({target: _installed(target) or built}, capability=str(fitting[0]) if fitting else "", sha256="")
    if why := misfit({file: {"sha256": "", "engine": {"gpu": "", **engine}}}, here, file=file):
        yield warning(model.name, f"expected a plan for this machine; {why.rpartition('; ')[0]}", model.rebuild)


def _installed(package: str) -> str:
    """Its version; "" where it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


register(check)
