"""Raw heads of every box family for three pictures, and what they mean, in plain numpy.

Picture i is grey of level i everywhere: `graphs.choosing` answers row i of the banks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import graphs
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from tricade_build.families import FAMILIES, seams
from tricade_build.fold import Folded, Front, fold
from tricade_build.spec import Normalize
from tricade_build.want import Want

SIZE = (64, 128)  # height, width
PICTURES = 3
CLASSES = 3
ANCHORS = 40
QUERIES = 20

Candidate = list[float]  # left, top, right, bottom, score, class
Banks = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Head:
    """A family's raw outputs, [3, …] each; `decode` gives all candidates of a picture out of its rows of the banks."""

    family: str
    banks: Banks
    decode: Callable[[Banks], Iterable[Candidate]]
    keys: Mapping[str, Any] = field(default_factory=dict)  # of `Want`
    tail: tuple[onnx.NodeProto, ...] = ()
    outputs: tuple[str, ...] = ()
    sizes: str = ""

    def model(self, *, dtype: type = np.float32, **keys: Any) -> onnx.ModelProto:
        banks = {n: bank.astype(dtype) if bank.dtype == np.float32 else bank for n, bank in self.banks.items()}
        kind = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
        return graphs.choosing(banks, *self.tail, outputs=self.outputs, sizes=self.sizes, dtype=kind, **keys)

    def want(self, **keys: Any) -> Want:
        return Want(**{"size": SIZE, "classes": CLASSES, "candidates": 300, **self.keys, **keys})

    def folded(self, *, family: str = "", single: bool = False, candidates: int = 300, **keys: Any) -> Folded:
        return folded(family or self.family, self.model(**keys), self.want(candidates=candidates), single=single)

    def expected(self, picture: int, *, dtype: type = np.float32, candidates: int = 300) -> NDArray[np.float32]:
        """[K, 6], by descending score."""
        rows = {
            name: (bank[picture].astype(dtype) if bank.dtype == np.float32 else bank[picture]).astype(np.float32)
            for name, bank in self.banks.items()
        }
        found = np.array([_sound(candidate) for candidate in self.decode(rows)], np.float32)
        return found[np.argsort(-found[:, 4], kind="stable")][:candidates]


def folded(family: str, model: onnx.ModelProto, want: Want, *, single: bool = False) -> Folded:
    front = Front("TENSOR", want.size, (), Normalize(), single=single)
    return fold(model, front, lambda nodes, answer: FAMILIES[family].end(nodes, answer, want), seams=seams())


def pictures(*levels: int) -> NDArray[np.uint8]:
    """UINT8 [M, h, w, 3] that the banks answer with these rows."""
    return np.array(levels, np.uint8).reshape(-1, 1, 1, 1) * np.ones((1, *SIZE, 3), np.uint8)


def _sound(candidate: Candidate) -> Candidate:
    return candidate if candidate[4] > 0 and np.all(np.isfinite(candidate)) else [0.0] * 6


def _best(box: Candidate, scores: NDArray[np.float32]) -> Candidate:
    return [*map(float, box), float(scores.max()), float(scores.argmax())]


def _corners(cx: float, cy: float, w: float, h: float) -> Candidate:
    return [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]


_random = np.random.default_rng(7)


def _boxes(anchors: int) -> NDArray[np.float32]:
    """Centres and sizes in pixels."""
    return _random.uniform(1, 64, (PICTURES, anchors, 4)).astype(np.float32)


def _shares(anchors: int, columns: int = CLASSES) -> NDArray[np.float32]:
    return _random.uniform(0.01, 0.99, (PICTURES, anchors, columns)).astype(np.float32)


def _logits(anchors: int, columns: int = CLASSES) -> NDArray[np.float32]:
    return _random.normal(0, 2, (PICTURES, anchors, columns)).astype(np.float32)


def _sigmoid(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return 1 / (1 + np.exp(-values))


def _yolov8(rows: Banks) -> Iterable[Candidate]:
    for cx, cy, w, h, *scores in rows["output0"].T:
        yield _best(_corners(cx, cy, w, h), np.array(scores))


def _yolov8_turned(rows: Banks) -> Iterable[Candidate]:
    return _yolov8({"output0": rows["output0"].T})


def _yolov5(rows: Banks) -> Iterable[Candidate]:
    for cx, cy, w, h, objectness, *scores in rows["output"]:
        yield _best(_corners(cx, cy, w, h), objectness * np.array(scores))


def _yolox(strides: tuple[int, ...]) -> Callable[[Banks], Iterable[Candidate]]:
    def decode(rows: Banks) -> Iterable[Candidate]:
        cells = [
            (column, row, stride)
            for stride in strides
            for row in range(SIZE[0] // stride)
            for column in range(SIZE[1] // stride)
        ]
        for (column, row, stride), anchor in zip(cells, rows["output"], strict=True):
            dx, dy, log_w, log_h, objectness, *scores = anchor
            box = (dx + column) * stride, (dy + row) * stride, np.exp(log_w) * stride, np.exp(log_h) * stride
            yield _best(_corners(*box), objectness * np.array(scores))

    return decode


def _rows(rows: Banks) -> Iterable[Candidate]:
    return ([*map(float, row)] for row in rows["output0"])


def _detr(
    activation: Callable[[NDArray[np.float32]], NDArray[np.float32]], classes: int = CLASSES
) -> Callable[[Banks], Iterable[Candidate]]:
    def decode(rows: Banks) -> Iterable[Candidate]:
        scale = np.array([SIZE[1], SIZE[0], SIZE[1], SIZE[0]])
        for box, logits in zip(rows["dets"], rows["labels"], strict=True):
            yield _best(_corners(*(box * scale)), activation(logits)[:classes])

    return decode


def _softmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.exp(values) / np.exp(values).sum()


def _detr_decoded(rows: Banks) -> Iterable[Candidate]:
    scale = np.array([SIZE[1], SIZE[0], SIZE[1], SIZE[0]])
    for box, score, label in zip(rows["corners"], rows["scores"], rows["labels"], strict=True):
        yield [*(box * scale), float(score), float(label)]


def _plugin(*, centre: bool = False, logits: bool = False, background: int = -1) -> Callable[[Banks], Any]:
    def decode(rows: Banks) -> Iterable[Candidate]:
        for box, scores in zip(rows["boxes"].reshape(-1, 4), rows["scores"], strict=True):
            shares = _sigmoid(scores) if logits else scores.copy()
            if background >= 0:
                shares[background] = 0
            yield _best(_corners(*box) if centre else [*box], shares)

    return decode


def _four(rows: Banks) -> Iterable[Candidate]:
    count = int(rows["num_dets"][0])
    places = zip(rows["det_boxes"], rows["det_scores"], rows["det_classes"], strict=True)
    for place, (box, score, label) in enumerate(places):
        yield [*map(float, box), float(score) if place < count else 0.0, float(label)]


def _two(rows: Banks) -> Iterable[Candidate]:
    for row, label in zip(rows["dets"], rows["labels"], strict=True):
        yield [*map(float, row), float(label)]


def _efficient_nms(**attributes: int) -> tuple[onnx.NodeProto, ...]:
    outs = ["num_dets", "det_boxes", "det_scores", "det_classes"]
    ranges = {"iou_threshold": 0.45, "score_threshold": 0.25, "max_output_boxes": 100}
    return (graphs.node("EfficientNMS_TRT", ["boxes", "scores"], outs, domain="TRT", **ranges, **attributes),)


_LABELS = _random.integers(0, CLASSES, (PICTURES, QUERIES))
_PLUGIN_OUTPUTS = ("num_dets", "det_boxes", "det_scores", "det_classes")
_YOLOV8 = np.concatenate([_boxes(ANCHORS), _shares(ANCHORS)], 2)
_CELLS = {strides: sum((SIZE[0] // s) * (SIZE[1] // s) for s in strides) for strides in ((8, 16, 32), (8, 16, 32, 64))}


def _yolox_bank(strides: tuple[int, ...]) -> NDArray[np.float32]:
    cells = _CELLS[strides]
    return np.concatenate([_random.normal(0, 1, (PICTURES, cells, 4)), _shares(cells, 1 + CLASSES)], 2).astype(
        np.float32
    )


def _ready(boxes: int) -> NDArray[np.float32]:
    labels = _random.integers(0, CLASSES, (PICTURES, boxes, 1))
    return np.concatenate([_boxes(boxes), _shares(boxes, 1), labels], 2).astype(np.float32)


HEADS: dict[str, Head] = {
    "yolov8": Head("yolov8", {"output0": _YOLOV8.transpose(0, 2, 1).copy()}, _yolov8),
    "yolov8, turned": Head("yolov8", {"output0": _YOLOV8}, _yolov8_turned),
    "yolov5": Head("yolov5", {"output": np.concatenate([_boxes(ANCHORS), _shares(ANCHORS, 1 + CLASSES)], 2)}, _yolov5),
    "yolov5, with the heads beside": Head(
        "yolov5",
        {
            "output": np.concatenate([_boxes(ANCHORS), _shares(ANCHORS, 1 + CLASSES)], 2),
            "stride8": np.zeros((PICTURES, 3, 8, 16, 5 + CLASSES), np.float32),
        },
        _yolov5,
    ),
    "yolox": Head("yolox", {"output": _yolox_bank((8, 16, 32))}, _yolox((8, 16, 32))),
    "yolox, P6": Head("yolox", {"output": _yolox_bank((8, 16, 32, 64))}, _yolox((8, 16, 32, 64))),
    "yolox, decoded": Head(
        "yolox",
        {"output": np.concatenate([_boxes(168), _shares(168, 1 + CLASSES)], 2)},
        _yolov5,
        keys={"decoded": True},
    ),
    "yolov10": Head("yolov10", {"output0": _ready(30)}, _rows),
    "detr": Head("detr", {"dets": _shares(QUERIES, 4), "labels": _logits(QUERIES)}, _detr(_sigmoid)),
    "detr, the other way round": Head(
        "detr", {"labels": _logits(QUERIES), "dets": _shares(QUERIES, 4)}, _detr(_sigmoid)
    ),
    "detr, four classes": Head(
        "detr", {"labels": _logits(QUERIES, 4), "dets": _shares(QUERIES, 4)}, _detr(_sigmoid, 4), keys={"classes": 4}
    ),
    "detr, softmax": Head(
        "detr",
        {"labels": _logits(QUERIES, CLASSES + 1), "dets": _shares(QUERIES, 4)},
        _detr(_softmax),
        keys={"activation": "softmax"},
    ),
    "detr, decoded": Head(
        "detr",
        {"corners": _shares(QUERIES, 4), "scores": _shares(QUERIES, 1)[:, :, 0], "labels": _LABELS},
        _detr_decoded,
        tail=(
            graphs.node("CastLike", ["orig_target_sizes", "corners"], ["sizes"]),
            graphs.node("Concat", ["sizes", "sizes"], ["twice"], axis=1),
            graphs.node("Unsqueeze", ["twice", "one"], ["scale"]),
            graphs.node("Mul", ["corners", "scale"], ["boxes"]),
        ),
        outputs=("labels", "boxes", "scores"),
        sizes="orig_target_sizes",
    ),
    "nms, plugin": Head(
        "nms",
        {"boxes": _boxes(ANCHORS), "scores": _shares(ANCHORS)},
        _plugin(),
        tail=_efficient_nms(box_coding=0, background_class=-1, score_activation=0),
        outputs=_PLUGIN_OUTPUTS,
    ),
    "nms, plugin of centres and logits": Head(
        "nms",
        {"boxes": _boxes(ANCHORS)[:, :, None], "scores": _logits(ANCHORS)},
        _plugin(centre=True, logits=True, background=1),
        tail=_efficient_nms(box_coding=1, background_class=1, score_activation=1),
        outputs=_PLUGIN_OUTPUTS,
    ),
    "nms, four outputs": Head(
        "nms",
        {
            "num_dets": np.array([[20], [0], [7]], np.int32),
            "det_boxes": _boxes(QUERIES),
            "det_scores": _shares(QUERIES, 1)[:, :, 0],
            "det_classes": _LABELS.astype(np.int32),
        },
        _four,
    ),
    "nms, four outputs of numbers": Head(
        "nms",
        {
            "det_scores": _shares(QUERIES, 1)[:, :, 0],
            "det_classes": _LABELS.astype(np.float32),
            "det_boxes": _boxes(QUERIES),
            "num_dets": np.array([[20], [0], [7]]),
        },
        _four,
    ),
    "nms, two outputs": Head("nms", {"dets": _ready(QUERIES)[:, :, :5], "labels": _LABELS}, _two),
}
