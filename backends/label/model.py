"""`label`: indices to names and texts."""

from pathlib import Path
from runpy import run_path

run_path(str(Path(__file__).resolve().parents[1] / "tricade" / "load.py"))

from tricade.label import Label  # noqa: E402
from tricade.triton import model_of  # noqa: E402

TritonPythonModel = model_of(Label)
