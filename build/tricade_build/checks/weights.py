"""A network's files: something to run, and something to fall back to."""

from __future__ import annotations

from collections.abc import Iterator

from . import register
from .finding import Finding, error, warning
from .repository import CONFIG, FALLBACK, Model, Repository, Unread, tensors_of


def check(repository: Repository) -> Iterator[Finding]:
    for model in repository.networks:
        if model.versions:
            yield from _files(model)
        if model.is_plan:
            yield from _fallback(model)


def _files(model: Model) -> Iterator[Finding]:
    version = f"{model.name}/{model.versions[-1]}"
    if model.onnx_file is None and model.plan_file is None:
        wanted = "model.plan or model.onnx" if model.is_plan else "model.onnx"
        yield error(model.name, f"expected {wanted} in {version}; there is none", model.rebuild)
    elif model.onnx_file is None:
        yield warning(
            model.name,
            f"expected model.onnx in {version}, to fall back to where the plan does not fit; there is only a plan",
            model.rebuild,
        )


def _fallback(model: Model) -> Iterator[Finding]:
    """The same model for ONNX Runtime must be the same model."""
    fallback = model.fallback
    if fallback is None:
        report = error if model.plan_file is None else warning
        yield report(
            model.name, f"expected {FALLBACK}, to run model.onnx where no plan fits; there is none", model.rebuild
        )
    elif isinstance(fallback, Unread):
        yield error(model.name, f"expected a model configuration in {FALLBACK}; {fallback.why}", model.rebuild)
    else:
        for problem in _differences(model):
            yield error(model.name, f"{FALLBACK}: {problem}", f"correct one of them, or {model.rebuild}")


def _differences(model: Model) -> Iterator[str]:
    config, fallback = model.config, model.fallback
    if fallback.name not in ("", model.name):
        yield f"expected the name {model.name}; got {fallback.name}"
    if fallback.backend != "onnxruntime" and fallback.platform != "onnxruntime_onnx":
        yield f"expected backend onnxruntime; got {fallback.backend or fallback.platform or 'none'}"
    if fallback.max_batch_size != config.max_batch_size:
        yield f"expected max_batch_size {config.max_batch_size}, as in {CONFIG}; got {fallback.max_batch_size}"
    for kind, ours, theirs in (
        ("input", config.input, fallback.input),
        ("output", config.output, fallback.output),
    ):
        wanted, found = tensors_of(ours), tensors_of(theirs)
        for name in sorted(wanted.keys() | found.keys()):
            if wanted.get(name) != found.get(name):
                shown = [f"{t.dtype} {list(t.dims)}" if t else "none" for t in (wanted.get(name), found.get(name))]
                yield f"expected the {kind} {name} to be {shown[0]}, as in {CONFIG}; got {shown[1]}"


register(check)
