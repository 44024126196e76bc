"""What can go wrong in a build.

BuildError              one message for the user: what was expected, what came, what to do
├── SpecError           the pipeline file is wrong; carries all of its problems
├── FoldError           an ONNX file cannot become the network that the pipeline asks for
├── SampleError         the pictures to calibrate or verify with are none, too few, damaged or all alike
├── EngineError         a network that TensorRT does not compile
│   └── ParseError      it does not take the graph; carries every node it says no to
├── VerificationError   what was built does not answer as fp32 does
├── RepositoryError     the model repository holds something that is not this pipeline's
└── ModelsError         the example's models cannot be had
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class BuildError(Exception):
    """The build stops; the repository stays as it was."""


class SpecError(BuildError):
    """All problems of a pipeline file, each as `path: expected …; got …`."""

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = "".join(f"\n  {problem}" for problem in problems) if len(problems) > 1 else f" {problems[0]}"
        super().__init__(f"{path}:{listed}")


class FoldError(BuildError):
    """The graph's layout, inputs or opset are not what the family or head takes."""


class SampleError(BuildError):
    """Pictures, or what the detector finds in them, are not what can be measured on."""


class EngineError(BuildError):
    """Profiles that cannot be, a builder that fails, an engine that is not what its configuration says."""


@dataclass(frozen=True)
class Unparsed:
    """A node that TensorRT's parser says no to, and why; without names where it blames none."""

    op: str
    name: str
    why: str

    def __str__(self) -> str:
        node = f"{self.op} ({self.name})" if self.name else self.op
        return f"{node}: {self.why}" if node else self.why


class ParseError(EngineError):
    """All of them at once: a user exports again once, not once for each."""

    def __init__(self, version: str, problems: Sequence[Unparsed]) -> None:
        self.version, self.problems = version, tuple(problems)
        listed = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(
            f"expected a graph that TensorRT {version} takes; it refuses:{listed}\n"
            "export the model without these operators, or build with --target onnxruntime"
        )

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, tuple[Unparsed, ...]]]:
        return type(self), (self.version, self.problems)  # it crosses from the process that compiles


class VerificationError(BuildError):
    """Less agreement with fp32 than the pipeline file asks for, or numbers that are none; names the worst samples."""


class RepositoryError(BuildError):
    """Two pipelines want the same model, or the repository cannot be written."""


class ModelsError(BuildError):
    """The example's models are missing, or are not the ones that were pinned."""
