"""`tensorrt`: a plan for the GPU that is here, and the graph as its fallback: `model.plan` and `model.onnx`."""

from __future__ import annotations

from tricade.gpu import gpus

from ..engine_process import Kit
from ..errors import EngineError
from ..made import Made, Work
from ..networks import Job
from ..plans import Place, graph_and_plan, package_of
from ..spec import Pipeline
from . import Target, register

NAME = PACKAGE = "tensorrt"


def lacks() -> str:
    """Why there are no plans here; the GPU comes first, as TensorRT 8.6 takes the process down without one."""
    if not gpus():
        return "this machine shows no CUDA device"
    if package_of(PACKAGE) is None:
        return f"the Python package {PACKAGE} cannot be imported"
    return ""


def check(_: Pipeline) -> None:
    if lack := lacks():
        raise EngineError(
            f"expected a CUDA device and the Python package {PACKAGE} (8.6 or later) for target {NAME}; {lack}; build "
            "where they are, best in the image that serves, or with --target onnxruntime"
        )


def place(_: Job) -> Place:
    """The first GPU that CUDA shows: the one that Triton counts from, and that the compiler takes."""
    return Place(Kit(PACKAGE, NAME, package_of(PACKAGE).__version__), gpus()[0])


def make(job: Job, work: Work) -> dict[str, Made]:
    return graph_and_plan(job, work, place)


register(Target(NAME, check=check, make=make, lacks=lacks, rank=1))
