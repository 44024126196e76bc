"""`prove`: a folded graph is valid ONNX, and answers as its configuration says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray

from tricade.stage import Tensor

from .errors import FoldError
from .runtime import WIRE_TYPES, Runtime
from .shapes import Shapes


def prove(model: onnx.ModelProto, shapes: Shapes, inputs: Sequence[tuple[int, ...]]) -> None:
    """Check the graph, infer its shapes, run it on random pixels of each NHWC shape; raises `FoldError`."""
    try:
        onnx.checker.check_model(model)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise FoldError(f"expected a valid graph after folding; {error}") from error
    runtime = Runtime(model)
    random = np.random.default_rng(0)
    for shape in inputs:
        pixels = random.integers(0, 256, shape, np.uint8)
        _compare(runtime.run({shapes.input.name: pixels}), shapes.outputs, batch=shape[0])


def _compare(found: dict[str, NDArray[np.generic]], outputs: Sequence[Tensor], *, batch: int) -> None:
    for tensor in outputs:
        value = found[tensor.name]
        dtype = WIRE_TYPES.get(str(value.dtype), str(value.dtype))
        same = len(value.shape) == len(tensor.dims) + 1 and all(
            side in (-1, size) for side, size in zip((batch, *tensor.dims), value.shape, strict=True)
        )
        if dtype != tensor.dtype or not same:
            raise FoldError(
                f"expected {tensor.name} {tensor.dtype} {[batch, *tensor.dims]}, the graph gives {dtype} "
                f"{list(value.shape)}; export it again with a dynamic batch"
            )
