"""What a compiled plan takes, gives and computes in: read off the engine, else off its network."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tricade.manifest import PLAN
from tricade.plan import Plan, Profile, plan_from_engine
from tricade.stage import Tensor

from .engine_layers import counted, precisions_of
from .engine_work import Work, check_precision
from .errors import EngineError

TYPES: Mapping[str, str] = {"FLOAT": "FP32", "HALF": "FP16"}  # TensorRT's name: Triton's, where they differ
WORK = ("CONVOLUTION", "DECONVOLUTION", "FULLY_CONNECTED", "MATRIX_MULTIPLY")
PASSES = ("IDENTITY", "SHUFFLE", "SQUEEZE", "UNSQUEEZE")

__all__ = ["check_precision", "found_in_engine", "found_in_network"]


def found_in_network(network: Any, profile: Profile) -> tuple[Plan, Mapping[str, int]]:
    inputs = [network.get_input(place) for place in range(network.num_inputs)]
    outputs = [network.get_output(place) for place in range(network.num_outputs)]
    plan = Plan(PLAN, tuple(map(_tensor, inputs)), tuple(map(_tensor, outputs)), (profile,))
    return plan, _network_precisions(network)


def _tensor(tensor: Any) -> Tensor:
    return Tensor(tensor.name, TYPES.get(tensor.dtype.name, tensor.dtype.name), tuple(tensor.shape))


def _network_precisions(network: Any) -> Mapping[str, int]:
    """Of the layers that carry the work; of all, where none does."""
    layers = [network.get_layer(place) for place in range(network.num_layers)]
    layers = [layer for layer in layers if layer.num_outputs and layer.type.name != "CONSTANT"]
    makers = {layer.get_output(0).name: layer for layer in layers}
    work = [layer for layer in layers if layer.type.name in WORK]
    return counted(Counter(_layer_type(layer, makers) for layer in work or layers))


def _layer_type(layer: Any, makers: Mapping[str, Any]) -> str:
    """INT8 where its data was quantized; else the type it is bound to, else that of what it gives."""
    source = layer
    while source is not None and (source is layer or source.type.name in PASSES) and source.num_inputs:
        taken = source.get_input(0)
        source = None if taken is None else makers.get(taken.name)
    if source is not None and source.type.name == "DEQUANTIZE":
        return "INT8"
    if getattr(layer, "precision_is_set", False):
        return str(layer.precision.name)
    return str(layer.get_output(0).dtype.name)


def found_in_engine(trt: Any, plan: bytes, log: Any, network: Any, work: Work) -> tuple[Plan, Mapping[str, int]]:
    runtime = trt.Runtime(log)
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        raise EngineError(f"TensorRT {trt.__version__} does not load what it has compiled: {log.told()}")
    seen = plan_from_engine(engine, PLAN)
    layers = _described(trt, engine) if hasattr(engine, "create_engine_inspector") else []
    return seen, precisions_of(layers, work) or _network_precisions(network)


def _described(trt: Any, engine: Any) -> list[dict[str, Any]]:
    """The engine's layers; none where the inspector tells names only."""
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    try:
        layers = json.loads(text).get("Layers", [])
    except (ValueError, AttributeError):
        return []
    return [layer for layer in layers if isinstance(layer, dict)]
