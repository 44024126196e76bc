"""`onnxruntime`: the folded graph itself, `model.onnx`."""

from __future__ import annotations

from ..plans import graph_alone
from . import Target, register

register(Target("onnxruntime", make=graph_alone, rank=0))
