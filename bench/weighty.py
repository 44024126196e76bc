"""The cascade `squares` with networks of real weight: a detector of YOLO's size (640 × 640, about 13 GMAC a picture)
and ResNet-50 (224 × 224, 4 GMAC a crop).

Their weights are random, as only speed counts, and their answers are those of `squares`: what the convolutions give is
squeezed to a thousandth and added, so no compiler can leave them out. How many objects a picture holds is thus known.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cascade
import numpy as np
import onnx
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

SIDE, CROP = 640, 224
# Channels and residual blocks after each halving of the picture: the proportions of YOLOv8s.
STAGES = ((32, 0), (64, 2), (128, 4), (256, 4), (512, 2))
RESNET = ((64, 3), (128, 4), (256, 6), (512, 3))  # He et al. 2015, table 1: ResNet-50
WHISPER = 1e-3  # what the convolutions add to an answer, at most
Stages = Sequence[tuple[int, int]]


def write(folder: Path, *, stages: Stages = STAGES, resnet: Stages = RESNET, **keys: Any) -> Path:
    """Both networks and `weighty.yaml`; `keys` override the file's."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(detector(stages), folder / "detector.onnx")
    onnx.save(classifier(resnet), folder / "classifier.onnx")
    spec: dict[str, Any] = {
        "name": "weighty",
        "detector": {
            "onnx": "detector.onnx",
            "family": "yolov8",
            "size": [SIDE, SIDE],
            "max_batch": 16,
            "max_detections": cascade.MAX_DETECTIONS,
            "labels": ["warm", "cool"],
        },
        "classifiers": {
            "colour": {
                "onnx": "classifier.onnx",
                "head": "softmax",
                "size": [CROP, CROP],
                "max_batch": 64,
                "labels": list(cascade.COLOURS),
            }
        },
        **keys,
    }
    path = folder / "weighty.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def detector(stages: Stages = STAGES) -> onnx.ModelProto:
    """`[M, 3, 640, 640]` in 0..1 to yolov8's raw `[M, 6, 400]`, for pictures of `squares` at twice their size."""
    made = _Layers()
    made.add("AveragePool", "images", out="squares/images", kernel_shape=[2, 2], strides=[2, 2])
    answer = made.include(cascade.detector_model(), "squares/")
    features = "images"
    for place, (channels, blocks) in enumerate(stages):
        features = made.silu(made.conv(features, channels if place else 32, kernel=3, stride=2))
        for _ in range(blocks):
            features = made.add("Add", features, made.silu(made.conv(features, channels, kernel=3, gain=0.3)))
    whisper = made.whisper(features, 1)
    doubled = made.add("Mul", answer, made.constant(np.array([2, 2, 2, 2, 1, 1]).reshape(1, 6, 1)))
    made.add("Add", doubled, made.add("Reshape", whisper, made.shape(0, 1, 1)), out="output0")
    return made.model(("images", SIDE), ("output0", [6, cascade.GRID**2]))


def classifier(resnet: Stages = RESNET) -> onnx.ModelProto:
    """`[N, 3, 224, 224]` in 0..1 to logits `[N, 8]`."""
    made = _Layers()
    made.add("Identity", "images", out="squares/images")
    answer = made.include(cascade.colour_model(), "squares/")
    features = made.add("Relu", made.conv("images", 64, kernel=7, stride=2))
    features = made.add("MaxPool", features, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage, (channels, blocks) in enumerate(resnet):
        for block in range(blocks):
            features = _bottleneck(made, features, channels, stride=2 if stage and not block else 1)
    whisper = made.whisper(features, len(cascade.COLOURS))
    made.add("Add", answer, made.add("Reshape", whisper, made.shape(0, -1)), out="logits")
    return made.model(("images", CROP), ("logits", [len(cascade.COLOURS)]))


def _bottleneck(made: _Layers, features: str, channels: int, *, stride: int) -> str:
    inner = made.add("Relu", made.conv(features, channels, kernel=1))
    inner = made.add("Relu", made.conv(inner, channels, kernel=3, stride=stride))
    inner = made.conv(inner, 4 * channels, kernel=1, gain=0.3)
    if made.channels[features] != 4 * channels:
        features = made.conv(features, 4 * channels, kernel=1, stride=stride)
    return made.add("Relu", made.add("Add", features, inner))


class _Layers:
    """Nodes with random weights; `channels` of each tensor that has some."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self.channels = {"images": 3}

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        out = out or f"{op}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        self.channels[out] = self.channels.get(inputs[0], 0)
        return out

    def conv(self, tensor: str, channels: int, *, kernel: int, stride: int = 1, gain: float = 1.0) -> str:
        shape = (channels, self.channels[tensor], kernel, kernel)
        weights = self._random.normal(0, gain * np.sqrt(2 / np.prod(shape[1:])), shape)
        names = self.constant(weights), self.constant(np.zeros(channels))
        sides: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        out = self.add("Conv", tensor, *names, **sides)
        self.channels[out] = channels
        return out

    def silu(self, tensor: str) -> str:
        return self.add("Mul", tensor, self.add("Sigmoid", tensor))

    def whisper(self, features: str, channels: int) -> str:
        """[n, channels, 1, 1], none above a thousandth."""
        mean = self.conv(self.add("GlobalAveragePool", features), channels, kernel=1)
        return self.add("Mul", self.add("Tanh", mean), self.constant(np.array(WHISPER)))

    def constant(self, value: NDArray[Any]) -> str:
        return self._kept(np.asarray(value, np.float32))

    def shape(self, *sides: int) -> str:
        return self._kept(np.array(sides, np.int64))

    def _kept(self, value: NDArray[Any]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(value, name))
        return name

    def include(self, model: onnx.ModelProto, prefix: str) -> str:
        """All of another model, its input `prefix` + its name; returns its output."""
        model = onnx.compose.add_prefix(model, prefix)
        self._nodes += model.graph.node
        self._constants += model.graph.initializer
        return str(model.graph.output[0].name)

    def model(self, entry: tuple[str, int], out: tuple[str, Sequence[int]]) -> onnx.ModelProto:
        name, side = entry
        graph = helper.make_graph(
            self._nodes,
            "weighty",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3, side, side])],
            [helper.make_tensor_value_info(out[0], TensorProto.FLOAT, ["n", *out[1]])],
            self._constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
