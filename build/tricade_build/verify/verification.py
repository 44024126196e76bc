"""What a comparison with fp32 found, and whether that is good enough."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic.dataclasses import dataclass

WORST = 5  # samples that are named


@dataclass(frozen=True)
class Deviation:
    """Absolute errors of the values that are finite both in fp32 and in the candidate."""

    max_error: float
    mean_error: float
    values: int  # that were compared; 0 where the order of rows or the shape may differ
    not_finite: int  # of the candidate, though finite in fp32


@dataclass(frozen=True)
class Worst:
    """A sample on which the two disagree, and what each answers."""

    picture: str  # the file's name
    what: str  # e.g. 2 missed, 1 added
    reference: str  # fp32's answer, "" where it is no matter of answers
    candidate: str


@dataclass(frozen=True)
class Verification:
    """How a network as it is served compares with itself in fp32."""

    samples: int
    unit: str  # what a sample is: pictures or crops
    measure: str  # what `agreement` is
    agreement: float  # 0 to 1
    drop: float  # 1 - agreement
    max_drop: float  # what the pipeline file allows
    errors: Mapping[str, Deviation]  # by tensor
    not_finite: int  # values, over all tensors
    details: Mapping[str, float]
    worst: tuple[Worst, ...]  # the worst first

    @property
    def passed(self) -> bool:
        """Nothing proven is not passed."""
        return self.samples > 0 and self.not_finite == 0 and self.drop <= self.max_drop


def failure(model: str, precision: str, verification: Verification) -> str:
    """What the gate says of one that has not passed."""
    return "\n  ".join([f"{model} in {precision}: {_why(verification)}", *map(_line, verification.worst)]) + (
        f"\n{_advice(precision, verification)}"
    )


def _why(found: Verification) -> str:
    if not found.samples:
        return f"expected {found.unit} to compare with fp32 on; the pictures have none"
    if found.not_finite:
        tensors = ", ".join(name for name, error in found.errors.items() if error.not_finite)
        return (
            f"expected finite numbers where fp32's are; got {found.not_finite} that are not, in {tensors} "
            f"(agreement {found.agreement:.4f})"
        )
    return (
        f"expected an agreement with fp32 ({found.measure}) of at least {1 - found.max_drop:.4g} "
        f"(verification.max_drop {found.max_drop:.4g}); got {found.agreement:.4f} over {found.samples} {found.unit}"
    )


def _line(worst: Worst) -> str:
    answers = f"; fp32: {worst.reference}; here: {worst.candidate}" if worst.reference or worst.candidate else ""
    return f"{worst.picture}: {worst.what}{answers}"


def _advice(precision: str, found: Verification) -> str:
    if not found.samples:
        return "name a folder under verification.images whose pictures show what this network looks at"
    if precision == "fp32":
        ways = ["build with --target onnxruntime"]
    else:
        ways = ["name its sensitive nodes in keep_fp32", "choose another precision for it"]
    if precision == "int8":
        ways.insert(1, "calibrate with other pictures or another calibration.method")
    if not found.not_finite:
        ways.append("allow more by verification.max_drop")
    return ", ".join(ways[:-1]) + ("" if len(ways) == 1 else ", or ") + ways[-1]
