"""Pairs of QuantizeLinear and DequantizeLinear in front of layers, as TensorRT and ONNX Runtime fuse them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnxruntime.quantization.calibrate import TensorData  # type: ignore[import-untyped]
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer  # type: ignore[import-untyped]
from onnxruntime.quantization.quant_utils import add_dequant_output_suffix, add_infer_metadata  # type: ignore[import-untyped]

from .layers import OPERATORS, Layer

OPTIONS = {
    "ActivationSymmetric": True,
    "WeightSymmetric": True,
    "QuantizeBias": False,
    "OpTypesToExcludeOutputQuantization": list(OPERATORS),
    "DedicatedQDQPair": True,  # TensorRT fuses a pair into one layer
    "AddQDQPairToWeight": True,  # TensorRT 8.6 takes weights in fp32 only, with their scale behind them
}


def paired(model: onnx.ModelProto, layers: Sequence[Layer], ranges: Mapping[str, float]) -> onnx.ModelProto:
    """A copy in which what each layer is given goes through int8: its entry as a whole, its weights by channel."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _declare(copy, layers)
    bounds = {
        layer.entry: TensorData(lowest=np.float32(-ranges[layer.entry]), highest=np.float32(ranges[layer.entry]))
        for layer in layers
    }
    names = {layer.node for layer in layers}
    quantizer = QDQQuantizer(
        copy, True, False, TensorProto.INT8, TensorProto.INT8, bounds, sorted(names), [], list(OPERATORS), OPTIONS
    )
    quantizer.quantize_model()
    made: onnx.ModelProto = quantizer.model.model
    _unpair_others(made.graph, layers)
    _put_pairs_before_readers(made.graph, count=len(model.graph.node))
    del made.graph.value_info[:], made.metadata_props[:]
    made.metadata_props.extend(model.metadata_props)
    made.producer_name, made.producer_version = model.producer_name, model.producer_version
    return made


def _declare(model: onnx.ModelProto, layers: Sequence[Layer]) -> None:
    """The types that the quantizer asks for, so that it infers none itself."""
    entries = dict.fromkeys(layer.entry for layer in layers)
    del model.graph.value_info[:]
    model.graph.value_info.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in entries)
    add_infer_metadata(model)


def _unpair_others(graph: onnx.GraphProto, layers: Sequence[Layer]) -> None:
    """Where one layer reads a tensor, the quantizer gives its pair to all that read it."""
    names = {layer.node for layer in layers}
    before = {add_dequant_output_suffix(name): name for layer in layers for name in (layer.entry, layer.weight)}
    for node in graph.node:
        if node.name not in names:
            node.input[:] = [before.get(name, name) for name in node.input]


def _put_pairs_before_readers(graph: onnx.GraphProto, *, count: int) -> None:
    """The quantizer adds its nodes behind the `count` that were there, and sorts without a look into branches."""
    nodes = list(graph.node)
    pairs = {node.output[0]: node for node in nodes[count:]}
    ordered: list[onnx.NodeProto] = []

    def place(node: onnx.NodeProto) -> None:
        for pair in [pairs.pop(name) for name in node.input if name in pairs]:
            place(pair)
        ordered.append(node)

    for node in nodes[:count]:
        place(node)
    del graph.node[:]
    graph.node.extend(ordered)
