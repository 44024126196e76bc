"""`tensorrt` where Triton has no native one: the same plans, run by the Python package."""

from pathlib import Path
from runpy import run_path

run_path(str(Path(__file__).resolve().parents[1] / "tricade" / "load.py"))

from tricade.plan_network import PlanNetwork  # noqa: E402
from tricade.triton import model_of  # noqa: E402

TritonPythonModel = model_of(PlanNetwork)
