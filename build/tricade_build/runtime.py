"""Running a graph in ONNX Runtime while it is built: its shapes are measured, not believed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from .errors import FoldError

Shape = tuple[int, ...]
BEYOND = 10_000  # no version of anything
WIRE_TYPES: Mapping[str, str] = {
    "uint8": "UINT8", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32",
}  # fmt: skip


@dataclass(frozen=True)
class Newest:
    """The newest opset and IR version that the installed ONNX Runtime takes."""

    opset: int
    ir: int


@cache
def newest() -> Newest:
    """Found by asking for more: it has no function that says so. What it does not say counts as no limit."""
    return Newest(opset=_limit(r"till opset (\d+)", opset=BEYOND), ir=_limit(r"IR version: (\d+)\s*$", ir=BEYOND))


def _limit(pattern: str, *, opset: int = 17, ir: int = 8) -> int:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", [value], [])
    graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1]))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    try:
        _session(model)
    except Exception as error:  # ONNX Runtime has a dozen classes without a common base
        found = re.search(pattern, str(error).strip().removesuffix("."))
        return int(found.group(1)) if found else BEYOND
    return BEYOND


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Runtime:
    """A graph, ready to run on the CPU."""

    def __init__(self, model: onnx.ModelProto) -> None:
        try:
            self._session = _session(model)
        except Exception as error:  # as above
            raise FoldError(f"expected a graph that ONNX Runtime loads; {_first_line(error)}") from error

    def run(self, inputs: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
        """The outputs by name."""
        names = [output.name for output in self._session.get_outputs()]
        try:
            return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))
        except Exception as error:  # as above
            shapes = ", ".join(str(list(value.shape)) for value in inputs.values())
            raise FoldError(
                f"expected a graph that runs with an input of shape {shapes}; {_first_line(error)}; "
                "export it again with a dynamic batch, and check `size`"
            ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:300]
