"""The fixture cascade `squares`: two tiny networks, and pictures of which everything is known.

A picture is a grid of 20 × 20 cells of 16 px; an object is a coloured square of 8 px in the middle of a cell. The
detector finds the squares and tells warm from cool, the classifier `colour` names their colours.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

GRID, CELL, SQUARE = 20, 16, 8  # cells a side; pixels of a cell; pixels of a square
SIDE = GRID * CELL
GROUND = (32, 32, 32)
WARM = {"red": (255, 0, 0), "orange": (255, 128, 0), "yellow": (255, 255, 0), "rosé": (255, 0, 128)}
COOL = {"green": (0, 255, 96), "cyan": (0, 255, 255), "blue": (0, 0, 255), "purple": (128, 0, 255)}
COLOURS = WARM | COOL
MAX_DETECTIONS = 300


@dataclass(frozen=True, order=True)
class Object:
    """A square in a cell; rows and columns count from 0."""

    row: int
    column: int
    colour: str

    @property
    def score(self) -> float:
        """What the detector gives: it descends from cell to cell, so the order of answers is known."""
        return 0.95 - 0.0005 * (self.row * GRID + self.column)


@dataclass(frozen=True)
class Expected:
    """The exact answer for one picture, in its order; `truncated` more were left out."""

    boxes: NDArray[np.float32]  # (n, 4): left, top, right, bottom in pixels of the picture
    scores: NDArray[np.float32]
    labels: tuple[str, ...]  # warm or cool
    colours: tuple[str, ...]
    truncated: int


def objects(count: int, *, seed: int = 0) -> list[Object]:
    """`count` objects, 0 to 400, in random cells and colours."""
    random = np.random.default_rng(seed)
    cells = random.permutation(GRID * GRID)[:count]
    colours = random.choice(list(COLOURS), count)
    return [Object(int(cell) // GRID, int(cell) % GRID, str(c)) for cell, c in zip(cells, colours, strict=True)]


def pixels(objects: Iterable[Object] = (), *, scale: int = 1) -> NDArray[np.uint8]:
    """The picture, RGB (320·scale, 320·scale, 3)."""
    picture = np.full((SIDE, SIDE, 3), GROUND, np.uint8)
    edge = (CELL - SQUARE) // 2
    for thing in objects:
        top, left = thing.row * CELL + edge, thing.column * CELL + edge
        picture[top : top + SQUARE, left : left + SQUARE] = COLOURS[thing.colour]
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


def picture(objects: Iterable[Object] = (), *, scale: int = 1, form: str = "PNG") -> bytes:
    """The picture as an encoded image; a lossy `form` changes pixels, not answers."""
    buffer = io.BytesIO()
    Image.fromarray(pixels(objects, scale=scale)).save(buffer, form)
    return buffer.getvalue()


def expected(
    objects: Iterable[Object], *, scale: int = 1, threshold: float = 0.25, max_detections: int = MAX_DETECTIONS
) -> Expected:
    """What the cascade must answer for `picture(objects, scale=scale)`."""
    found = sorted(thing for thing in objects if thing.score >= threshold)
    kept = found[:max_detections]
    edge = (CELL - SQUARE) // 2
    corner = np.array([(o.column * CELL + edge, o.row * CELL + edge) for o in kept], np.float32).reshape(-1, 2)
    return Expected(
        boxes=np.concatenate([corner, corner + SQUARE], axis=1) * scale,
        scores=np.array([thing.score for thing in kept], np.float32),
        labels=tuple("warm" if thing.colour in WARM else "cool" for thing in kept),
        colours=tuple(thing.colour for thing in kept),
        truncated=len(found) - len(kept),
    )


def write(
    folder: Path,
    *,
    detector: Mapping[str, Any] | None = None,
    colour: Mapping[str, Any] | None = None,
    classifiers: Mapping[str, Any] | None = None,
    **keys: Any,
) -> Path:
    """Write the networks and `squares.yaml`; arguments override its keys, `classifiers` adds more of them."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(detector_model(), folder / "squares.onnx")
    onnx.save(colour_model(), folder / "colour.onnx")
    spec = {
        "name": "squares",
        "detector": {
            "onnx": "squares.onnx",
            "family": "yolov8",
            "size": [SIDE, SIDE],
            "max_detections": MAX_DETECTIONS,
            "labels": ["warm", "cool"],
            **(detector or {}),
        },
        "classifiers": {"colour": colour_section(**(colour or {})), **(classifiers or {})},
        **keys,
    }
    path = folder / "squares.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def colour_section(**keys: Any) -> dict[str, Any]:
    """The section of the classifier `colour`, for a second one under another name."""
    section = {
        "onnx": "colour.onnx",
        "head": "softmax",
        "size": [16, 16],
        "max_batch": 8,
        "labels": list(COLOURS),
    }
    return section | keys


def detector_model() -> onnx.ModelProto:
    """`[M, 3, 320, 320]` in 0..1 to yolov8's raw `[M, 4+2, 400]`, one anchor a cell."""
    cell = np.arange(GRID * GRID)
    centre = [(cell % GRID) * CELL + CELL / 2, (cell // GRID) * CELL + CELL / 2]
    boxes = np.stack([*centre, *np.full((2, GRID * GRID), SQUARE)])[None]
    constants = {
        "boxes": boxes,
        "height_of_cell": 0.95 - 0.0005 * cell.reshape(1, 1, -1),
        # Red minus blue of a mean cell, far beyond 1: its sign, as 1 for warm or for cool.
        "warmth": np.reshape([1000, 0, -1000, -1000, 0, 1000], (2, 3, 1, 1)),
        "steep": np.array(20),
        "half": np.array(10),
        "four": np.array(4),
        "zero": np.array(0),
        "one": np.array(1),
    }
    node = helper.make_node
    nodes = [
        # A square fills a quarter of its cell; grey of any level has no saturation.
        node("ReduceMax", ["images"], ["brightest"], axes=[1], keepdims=1),
        node("ReduceMin", ["images"], ["darkest"], axes=[1], keepdims=1),
        node("Sub", ["brightest", "darkest"], ["saturation"]),
        node("AveragePool", ["saturation"], ["filled"], kernel_shape=[CELL, CELL], strides=[CELL, CELL]),
        node("Mul", ["filled", "four"], ["share"]),
        node("Mul", ["share", "steep"], ["rising"]),
        node("Sub", ["rising", "half"], ["signed"]),
        node("Clip", ["signed", "zero", "one"], ["present"]),
        node("AveragePool", ["images"], ["mean"], kernel_shape=[CELL, CELL], strides=[CELL, CELL]),
        node("Conv", ["mean", "warmth"], ["sides"]),
        node("Clip", ["sides", "zero", "one"], ["side"]),
        node("Mul", ["present", "side"], ["classes"]),
        node("Reshape", ["classes", "rows"], ["flat"]),
        node("Mul", ["flat", "height_of_cell"], ["scores"]),
        node("Reshape", ["present", "row"], ["anchors"]),
        node("Mul", ["anchors", "zero"], ["nothing"]),
        node("Add", ["nothing", "boxes"], ["placed"]),
        node("Concat", ["placed", "scores"], ["output0"], axis=1),
    ]
    shapes = {"rows": (0, 2, GRID * GRID), "row": (0, 1, GRID * GRID)}
    return _model(nodes, constants, shapes, entry=("images", SIDE), out=("output0", [6, GRID * GRID]))


def colour_model() -> onnx.ModelProto:
    """`[N, 3, 16, 16]` in 0..1 to logits `[N, 8]`: the nearest colour."""
    colours = np.array(list(COLOURS.values())) / 255
    constants = {"weights": 100 * colours.T, "bias": -50 * (colours**2).sum(1)}
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "weights", "bias"], ["logits"]),
    ]
    return _model(nodes, constants, {}, entry=("images", 16), out=("logits", [len(COLOURS)]))


def _model(
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    entry: tuple[str, int],
    out: tuple[str, list[int]],
) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()]
    initializers += [numpy_helper.from_array(np.array(shape, np.int64), name) for name, shape in shapes.items()]
    side = entry[1]
    graph = helper.make_graph(
        nodes,
        "cascade",
        [helper.make_tensor_value_info(entry[0], TensorProto.FLOAT, ["n", 3, side, side])],
        [helper.make_tensor_value_info(out[0], TensorProto.FLOAT, ["n", *out[1]])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
