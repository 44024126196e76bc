"""Verifications as words and numbers to show: one row a network, within it one a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .verification import Deviation, Verification

NONE = "\N{EN DASH}"  # nothing was compared


@dataclass(frozen=True)
class TensorRow:
    """Absolute errors of one tensor."""

    tensor: str
    values: str
    max_error: str
    mean_error: str
    not_finite: str


@dataclass(frozen=True)
class Row:
    """One network."""

    model: str
    verdict: str  # passed or failed
    agreement: str
    allowed: str  # the least agreement that passes
    measure: str
    samples: str  # with their unit
    tensors: tuple[TensorRow, ...]


def rows(verifications: Mapping[str, Verification]) -> list[Row]:
    """By model, in the mapping's order."""
    return [row_of(model, verification) for model, verification in verifications.items()]


def row_of(model: str, found: Verification) -> Row:
    return Row(
        model=model,
        verdict="passed" if found.passed else "failed",
        agreement=f"{found.agreement:.4f}" if found.samples else NONE,
        allowed=f"{1 - found.max_drop:.4g}",
        measure=found.measure,
        samples=f"{found.samples} {found.unit}",
        tensors=tuple(_tensor(name, error) for name, error in found.errors.items()),
    )


def _tensor(name: str, error: Deviation) -> TensorRow:
    return TensorRow(
        tensor=name,
        values=f"{error.values:,}" if error.values else NONE,
        max_error=f"{error.max_error:.2g}" if error.values else NONE,
        mean_error=f"{error.mean_error:.2g}" if error.values else NONE,
        not_finite=f"{error.not_finite:,}",
    )
