"""Settings that Triton or a pipeline does not bear."""

from __future__ import annotations

from collections.abc import Iterator

from ..local import STAGES
from . import register
from .finding import Finding, error
from .repository import CONFIG, Repository


def check(repository: Repository) -> Iterator[Finding]:
    for model in repository.models.values():
        if model.config.model_transaction_policy.decoupled:
            yield error(
                model.name,
                "expected one answer to each request; got model_transaction_policy decoupled",
                f"remove it from {CONFIG}",
            )
        if model.config.backend in STAGES and model.config.max_batch_size:
            yield error(
                model.name,
                f"expected max_batch_size 0 of a stage, which takes requests one by one; "
                f"got {model.config.max_batch_size}",
                model.rebuild,
            )
        if model.config.version_policy.HasField("specific"):
            yield error(
                model.name,
                "expected the latest version to be served, as this checks it; got version_policy specific",
                f"remove it from {CONFIG}; to go back to an older version, remove the folders of those after it",
            )
        if model.is_ensemble:
            for setting, instead in (
                ("model_warmup", "tricade serve warms the pipeline up"),
                ("instance_group", "the steps have theirs"),
            ):
                if getattr(model.config, setting):
                    yield error(
                        model.name,
                        f"expected no {setting} on an ensemble, with which Triton refuses it; got one",
                        f"remove it from {CONFIG}: {instead}",
                    )


register(check)
