"""`tensorrt-rtx`: a plan for named kinds of GPU, compiled on any machine, and the graph as its fallback."""

from __future__ import annotations

from ..engine import known_capabilities
from ..engine_process import Kit
from ..errors import EngineError
from ..made import Made, Work
from ..networks import Job
from ..plans import Place, graph_and_plan, package_of
from ..spec import Pipeline
from . import Target, register

NAME, PACKAGE = "tensorrt-rtx", "tensorrt_rtx"


def check(pipeline: Pipeline) -> None:
    package = package_of(PACKAGE)
    if package is None:
        raise EngineError(
            f"expected the Python package {PACKAGE} for target {NAME}; it cannot be imported; "
            "run: pip install tensorrt-rtx-cu13"
        )
    known = known_capabilities(package)
    if unknown := [capability for capability in pipeline.builder.capabilities if capability not in known]:
        raise EngineError(
            f"builder.capabilities: expected some of {', '.join(known)}, for which {NAME} {package.__version__} "
            f"compiles; got {unknown[0]}"
        )


def place(job: Job) -> Place:
    """Never the GPU that is here: the plan is for others too."""
    return Place(Kit(PACKAGE, NAME, package_of(PACKAGE).__version__), None, job.builder.capabilities)


def make(job: Job, work: Work) -> dict[str, Made]:
    return graph_and_plan(job, work, place)


register(Target(NAME, check=check, make=make, lacks=lambda: "it is taken only where it is named"))
