"""Running a graph in ONNX Runtime while it is built: its shapes are measured, not believed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from .errors import FoldError

Shape = tuple[int, ...]
WIRE_TYPES: Mapping[str, str] = {
    "uint8": "UINT8", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32",
}  # fmt: skip


class Runtime:
    """A graph of one input, ready to run on the CPU."""

    def __init__(self, model: onnx.ModelProto) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime has a dozen classes without a common base
            raise FoldError(f"expected a graph that ONNX Runtime loads; {_first_line(error)}") from error
        self.input = self._session.get_inputs()[0].name

    def run(self, value: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
        """The outputs by name."""
        names = [output.name for output in self._session.get_outputs()]
        try:
            return dict(zip(names, self._session.run(names, {self.input: value}), strict=True))
        except Exception as error:  # as above
            raise FoldError(
                f"expected a graph that runs with an input of shape {list(value.shape)}; {_first_line(error)}; "
                "export it again with a dynamic batch, and check `size`"
            ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:300]
