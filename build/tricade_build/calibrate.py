"""What int8 has to hold: the magnitudes of a network's tensors while it runs over real pictures.

Little is in memory at a time: a few rows run, and their tensors are counted while the next ones run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tricade.onnx_network import cores
from tricade.stage import Arrays

from .errors import FoldError, SampleError
from .histogram import METHODS, Histogram
from .plain import title_of
from .runtime import Runtime
from .samples import Sample
from .weights import Report

MAX_ROWS = 512  # more crops than that change no range
BYTES_AT_ONCE = 3 << 19  # of pixels: a megabyte of them makes hundreds of tensors


def ranges_from(
    model: onnx.ModelProto, tensors: Iterable[str], rows: Sequence[Arrays], *, method: str, report: Report
) -> dict[str, float]:
    """The largest magnitude that int8 is to hold of each FP32 tensor; raises `FoldError`."""
    histograms = {name: Histogram() for name in tensors}
    runtime = Runtime(answering(model, histograms))

    def count(name: str, values: NDArray[Any]) -> None:
        try:
            histograms[name].add(values)
        except ValueError as error:
            raise FoldError(
                f"cannot measure int8 ranges: {error} in the tensor {title_of(name)}; leave the network in fp32"
            ) from error

    counting: list[Future[None]] = []
    with ThreadPoolExecutor(cores()) as pool:
        for done, inputs in enumerate(rows, start=1):
            found = runtime.run(inputs)
            for each in counting:
                each.result()
            counting = [pool.submit(count, name, values) for name, values in found.items()]
            report("measuring int8 ranges", done / len(rows))
        for each in counting:
            each.result()
        return dict(zip(histograms, pool.map(METHODS[method], histograms.values()), strict=True))


def answering(model: onnx.ModelProto, tensors: Iterable[str]) -> onnx.ModelProto:
    """A copy that answers with these FP32 tensors instead."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.output[:]
    made.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in tensors)
    return made


def rows_of(samples: Sequence[Sample], *, limit: int = MAX_ROWS) -> list[Arrays]:
    """Inputs of a few rows each, `limit` in all, evenly over the samples; raises `SampleError` for none."""
    total = sum(_height(sample.inputs) for sample in samples)
    if not total:
        raise SampleError("expected something to measure int8 ranges on; the pictures give the network nothing")
    chosen = np.unique(np.linspace(0, total - 1, min(limit, total)).round().astype(int))
    return list(_pieces(samples, chosen))


def _pieces(samples: Sequence[Sample], chosen: NDArray[np.intp]) -> Iterator[Arrays]:
    first = 0
    for sample in samples:
        height = _height(sample.inputs)
        mine = chosen[(chosen >= first) & (chosen < first + height)] - first
        first += height
        bytes_of_row = sum(array.nbytes for array in sample.inputs.values()) // max(1, height)
        step = max(1, BYTES_AT_ONCE // max(1, bytes_of_row))
        for start in range(0, len(mine), step):
            yield {name: array[mine[start : start + step]] for name, array in sample.inputs.items()}


def _height(inputs: Mapping[str, NDArray[Any]]) -> int:
    return len(next(iter(inputs.values())))
