"""What can go wrong in a build.

BuildError              one message for the user: what was expected, what came, what to do
├── SpecError           the pipeline file is wrong; carries all of its problems
├── FoldError           an ONNX file cannot become the network that the pipeline asks for
├── RepositoryError     the model repository holds something that is not this pipeline's
└── ModelsError         the example's models cannot be had
"""

from __future__ import annotations

from collections.abc import Sequence
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


class RepositoryError(BuildError):
    """Two pipelines want the same model, or the repository cannot be written."""


class ModelsError(BuildError):
    """The example's models are missing, or are not the ones that were pinned."""
