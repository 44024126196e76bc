"""A folded graph to int8: explicit Q/DQ in front of the layers that carry the work, measured on real pictures."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import version_converter

from .calibrate import ranges_from, rows_of
from .errors import FoldError
from .fold import Folded
from .fuse import fuse, own
from .kept import kept, named
from .layers import Layer, ends_of, layers_of, resized
from .noise import noisy
from .pairs import paired
from .prove import prove
from .samples import Sample
from .weights import Report

MIN_OPSET = 13  # below it scales have no axis
MIN_IR = 7  # came with that opset
NOISE_ROWS = 16  # enough to tell which layers int8 hurts


def quantized_from(
    folded: Folded, samples: Sequence[Sample], *, method: str, keep: Sequence[str], report: Report
) -> Folded:
    """The same network with its layers in int8, apart from those at its ends, those that int8 hurts, and `keep`.

    `keep` are names of nodes, as in `kept`. Raises `FoldError` and `SampleError`.
    """
    model, layers = _prepared(folded, keep)
    entries = dict.fromkeys(layer.entry for layer in layers)
    ranges = ranges_from(model, entries, rows_of(samples), method=method, report=report)
    hurt = noisy(model, layers, ranges, rows_of(samples, limit=NOISE_ROWS), report)
    layers = [layer for layer in layers if layer.node not in hurt]
    if not layers:
        raise FoldError(_nothing("int8 hurts all of its layers"))
    made = paired(model, layers, ranges)
    prove(made, folded.shapes, _shapes(samples))
    return Folded(made, folded.shapes, folded.raw)


def _prepared(folded: Folded, keep: Sequence[str]) -> tuple[onnx.ModelProto, list[Layer]]:
    """A copy of the graph that is ready for Q/DQ, and the layers to put into int8."""
    model = onnx.ModelProto()
    model.CopyFrom(folded.model)
    named(model)
    left = kept(model.graph, keep)
    if any(node.op_type == "QuantizeLinear" for node in own(model.graph)):
        raise FoldError("expected a network in fp32; it holds Q/DQ nodes already; `precision: fp32` serves it as it is")
    model = _modern(model)
    into = fuse(model)
    left |= {into[name] for name in left & into.keys()}
    layers = layers_of(model)
    left |= ends_of(model.graph, layers, folded.raw) | resized(model.graph, layers)
    layers = [layer for layer in layers if layer.node not in left and not layer.slight]
    if not layers:
        raise FoldError(_nothing("the network has none"))
    return model, layers


def _modern(model: onnx.ModelProto) -> onnx.ModelProto:
    """In an opset that has per-channel scales."""
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if opset >= MIN_OPSET:
        return model
    try:
        made = version_converter.convert_version(model, MIN_OPSET)
    except Exception as error:  # a converter of onnx's raises nearly anything
        why = str(error).strip().split("\n")[0][:200]
        raise FoldError(
            f"expected opset {MIN_OPSET} or later for int8, found {opset}, which cannot be converted: {why}; "
            "export the model again, e.g. with opset 17"
        ) from error
    made.ir_version = max(made.ir_version, MIN_IR)
    named(made)
    return made


def _nothing(why: str) -> str:
    return (
        "expected layers for int8: convolutions and matrix products with constant fp32 weights and 16 channels or "
        f"more, apart from the first and the last; {why}; set its `precision` to fp16 or fp32"
    )


def _shapes(samples: Sequence[Sample]) -> list[tuple[int, ...]]:
    """NHWC: one row of the narrowest and of the widest sample, and two where any sample has as many."""
    shapes = sorted({array.shape[1:] for sample in samples for array in sample.inputs.values()})
    most = max(len(array) for sample in samples for array in sample.inputs.values())
    return [(1, *shapes[0]), (1, *shapes[-1]), (min(2, most), *shapes[0])]
