"""`turn`: crops a classifier says are upside down are turned."""

from pathlib import Path
from runpy import run_path

run_path(str(Path(__file__).resolve().parents[1] / "tricade" / "load.py"))

from tricade.triton import model_of  # noqa: E402
from tricade.turn import Turn  # noqa: E402

TritonPythonModel = model_of(Turn)
