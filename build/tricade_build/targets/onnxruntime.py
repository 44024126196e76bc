"""`onnxruntime`: the folded graph itself, `1/model.onnx`."""

from __future__ import annotations

from ..plans import without_plan
from ..precision import check_precisions
from . import Target, register

NAME = "onnxruntime"

register(Target(NAME, check=lambda pipeline: check_precisions(pipeline, target=NAME), weights=without_plan, rank=0))
