"""`crop`: what the detector found to boxes and crops."""

from pathlib import Path
from runpy import run_path

run_path(str(Path(__file__).resolve().parents[1] / "tricade" / "load.py"))

from tricade.crop import Crop  # noqa: E402
from tricade.triton import model_of  # noqa: E402

TritonPythonModel = model_of(Crop)
