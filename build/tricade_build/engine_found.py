"""What a compiled plan takes, gives and computes in: read off the engine, else off its network."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tricade.manifest import PLAN
from tricade.plan import Plan, Profile, plan_from_engine
from tricade.stage import Tensor

from .errors import EngineError

PRECISIONS: Mapping[str, str] = {
    "FLOAT": "fp32", "FP32": "fp32", "HALF": "fp16", "FP16": "fp16", "BF16": "bf16",
    "INT8": "int8", "FP8": "fp8", "INT4": "int4", "FP4": "fp4",
}  # fmt: skip
TYPES: Mapping[str, str] = {"FLOAT": "FP32", "HALF": "FP16"}  # TensorRT's name: Triton's, where they differ


def found_in_network(network: Any, profile: Profile) -> tuple[Plan, Mapping[str, int]]:
    inputs = [network.get_input(place) for place in range(network.num_inputs)]
    outputs = [network.get_output(place) for place in range(network.num_outputs)]
    plan = Plan(PLAN, tuple(map(_tensor, inputs)), tuple(map(_tensor, outputs)), (profile,))
    return plan, _network_precisions(network)


def _tensor(tensor: Any) -> Tensor:
    return Tensor(tensor.name, TYPES.get(tensor.dtype.name, tensor.dtype.name), tuple(tensor.shape))


def _network_precisions(network: Any) -> Mapping[str, int]:
    layers = [network.get_layer(place) for place in range(network.num_layers)]
    found = [layer.get_output(0).dtype.name for layer in layers if layer.num_outputs and layer.type.name != "CONSTANT"]
    return _counted(found)


def found_in_engine(trt: Any, plan: bytes, log: Any, network: Any) -> tuple[Plan, Mapping[str, int]]:
    runtime = trt.Runtime(log)
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        raise EngineError(f"TensorRT {trt.__version__} does not load what it has compiled: {log.told()}")
    seen = plan_from_engine(engine, PLAN)
    precisions = _engine_precisions(trt, engine) if hasattr(engine, "create_engine_inspector") else {}
    return seen, precisions or _network_precisions(network)


def _engine_precisions(trt: Any, engine: Any) -> Mapping[str, int]:
    """By the type of each layer's first output; empty where the inspector tells names only."""
    inspector = engine.create_engine_inspector()
    text = inspector.get_engine_information(trt.LayerInformationFormat.JSON)
    try:
        layers = json.loads(text).get("Layers", [])
    except (ValueError, AttributeError):
        return {}
    described = [layer["Outputs"][0] for layer in layers if isinstance(layer, dict) and layer.get("Outputs")]
    words = [re.findall(r"[A-Z]+\d*", str(output.get("Format/Datatype", "")).upper()) for output in described]
    return _counted([next((word for word in some if word in PRECISIONS), "") for some in words])


def _counted(types: list[str]) -> Mapping[str, int]:
    """Types of shapes, indices and truths are no precision."""
    return dict(sorted(Counter(PRECISIONS[name] for name in types if name in PRECISIONS).items()))
