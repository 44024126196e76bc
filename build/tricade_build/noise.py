"""Layers that int8 hurts: what rounding does to each one's answer while all before it stays in fp32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper

from tricade.stage import Arrays

from .calibrate import answering
from .layers import Layer
from .pairs import paired
from .runtime import Runtime
from .weights import Report

MAX_NOISE = 0.04  # of the answer, both as root mean squares


def noisy(
    model: onnx.ModelProto,
    layers: Sequence[Layer],
    ranges: Mapping[str, float],
    rows: Sequence[Arrays],
    report: Report,
) -> frozenset[str]:
    """The names of the layers whose answers rounding changes by more than `MAX_NOISE`."""
    runtime = Runtime(_beside(model, layers, ranges))
    power, noise = np.zeros(len(layers)), np.zeros(len(layers))
    for done, inputs in enumerate(rows, start=1):
        found = runtime.run(inputs)
        power += [float(found[_power(layer)]) for layer in layers]
        noise += [float(found[_noise(layer)]) for layer in layers]
        report("looking for layers that int8 hurts", done / len(rows))
    hurt = noise > MAX_NOISE**2 * power
    return frozenset(layer.node for layer, much in zip(layers, hurt, strict=True) if much)


def _beside(model: onnx.ModelProto, layers: Sequence[Layer], ranges: Mapping[str, float]) -> onnx.ModelProto:
    """Each layer once more, in int8 beside itself; answers with the power of its answer and of the difference."""
    made = answering(model, ())
    nodes = {node.name: node for node in model.graph.node}
    twins = [replace(layer, node=f"{layer.node}/int8") for layer in layers]
    for layer, twin in zip(layers, twins, strict=True):
        node = made.graph.node.add()
        node.CopyFrom(nodes[layer.node])
        node.name = node.output[0] = twin.node
    made = paired(made, twins, ranges)
    for layer, twin in zip(layers, twins, strict=True):
        answer = nodes[layer.node].output[0]
        made.graph.node.extend(
            [
                helper.make_node("Sub", [answer, twin.node], [f"{layer.node}/difference"]),
                helper.make_node("ReduceSumSquare", [answer], [_power(layer)], keepdims=0),
                helper.make_node("ReduceSumSquare", [f"{layer.node}/difference"], [_noise(layer)], keepdims=0),
            ]
        )
    return answering(made, [name for layer in layers for name in (_power(layer), _noise(layer))])


def _power(layer: Layer) -> str:
    return f"{layer.node}/power"


def _noise(layer: Layer) -> str:
    return f"{layer.node}/noise"
