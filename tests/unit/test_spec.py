"""The pipeline file: defaults, and what is said about everything that can be wrong in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tricade_build.errors import SpecError
from tricade_build.spec import Pipeline
from tricade_build.spec_file import pipeline_from_file

UPRIGHT = {"head": "softmax", "resize": "pad", "labels": ["0", "180"]}
LINE = {"head": "ctc", "resize": "pad", "size": [48, 320]}


def spec(
    detector: dict[str, Any] | None = None, classifiers: dict[str, Any] | None = None, **keys: Any
) -> dict[str, Any]:
    """A pipeline with every necessary key; a key given as `...` is left out."""
    base = {"onnx": "net.onnx", "size": [64, 64], "labels": ["a", "b"]}
    made = {
        "name": "p",
        "detector": base | {"family": "yolov8"} | (detector or {}),
        "classifiers": {name: base | {"head": "softmax"} | own for name, own in (classifiers or {}).items()},
    } | keys
    return _without_gaps(made)


def _without_gaps(section: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_gaps(value) if isinstance(value, dict) else value
        for key, value in section.items()
        if value is not ...
    }


@pytest.fixture
def parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write data or text as a pipeline file beside `net.onnx`, and parse it."""
    (tmp_path / "net.onnx").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    def parse(data: dict[str, Any] | str) -> Pipeline:
        text = data if isinstance(data, str) else yaml.safe_dump(data)
        (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
        return pipeline_from_file(tmp_path / "p.yaml")

    return parse


def test_defaults(parse: Any) -> None:
    pipeline = parse(spec(classifiers={"c": {}}))

    detector, classifier = pipeline.detector, pipeline.classifiers["c"]
    assert (detector.resize, detector.pad, detector.max_batch, detector.max_detections) == ("letterbox", 114, 8, 100)
    assert (detector.threshold, detector.iou, detector.candidates) == (0.25, 0.5, 1000)
    assert (classifier.resize, classifier.pad, classifier.top_k, classifier.widths) == ("stretch", 0, 1, None)
    assert (pipeline.max_images, pipeline.limits.max_bytes, pipeline.limits.max_pixels) == (8, 20_000_000, 50_000_000)
    assert (pipeline.frames.ring_bytes, pipeline.frames.ring_slots) == (67_108_864, 32)
    assert (pipeline.instances.preprocess, pipeline.instances.crop, pipeline.instances.label) == (2, 2, 1)
    assert (pipeline.batching.max_delay_us, pipeline.precision) == (0, "fp32")


@pytest.mark.parametrize(
    ("max_detections", "candidates"), [(1, 300), (30, 300), (31, 310), (100, 1000), (384, 3840), (3840, 3840)]
)
def test_candidates_follow_max_detections(parse: Any, max_detections: int, candidates: int) -> None:
    assert parse(spec({"max_detections": max_detections})).detector.candidates == candidates


@pytest.mark.parametrize(
    ("detector", "pad"),
    [
        ({}, 114),
        ({"normalize": {"mean": [50, 60, 70]}}, 114),
        ({"family": "dbnet"}, "edge"),
        ({"family": "dbnet", "normalize": {"mean": [127.5, 127.5, 127.5]}}, "edge"),
        ({"family": "dbnet", "pad": 114}, 114),
        ({"pad": 7}, 7),
        ({"pad": "edge"}, "edge"),
    ],
)
def test_pad_follows_the_family(parse: Any, detector: dict[str, Any], pad: int | str) -> None:
    assert parse(spec(detector)).detector.pad == pad


@pytest.mark.parametrize(
    ("detector", "iou"),
    [
        ({}, 0.5),
        ({"family": "yolov10"}, 1),
        ({"family": "detr"}, 1),
        ({"family": "nms"}, 0.5),
        ({"family": "auto"}, 0.5),
        ({"family": "detr", "iou": 0.7}, 0.7),
        ({"family": "detr", "tile": {"size": [32, 32]}}, 0.5),  # tiles find the same thing twice
    ],
)
def test_iou_follows_the_family(parse: Any, detector: dict[str, Any], iou: float) -> None:
    assert parse(spec(detector)).detector.iou == iou


def test_paths_are_beside_the_file_or_else_in_the_working_directory(parse: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "other.onnx").touch()
    (tmp_path / "elsewhere" / "net.onnx").touch()
    (tmp_path / "names.txt").touch()

    pipeline = parse(spec({"labels": "names.txt"}, {"c": {"onnx": "other.onnx", "labels": "metadata:names"}}))

    assert pipeline.detector.onnx == str(tmp_path / "net.onnx")
    assert pipeline.detector.labels == str(tmp_path / "names.txt")
    assert pipeline.classifiers["c"].onnx == str(tmp_path / "elsewhere" / "other.onnx")
    assert pipeline.classifiers["c"].labels == "metadata:names"


WRONG: list[tuple[dict[str, Any] | str, str]] = [
    ("", "expected a section with name, detector, classifiers; got None"),
    ("[]", "expected a section with name, detector, classifiers; got []"),
    ("a: [", "expected YAML;"),
    ("a: 1\na: 2", "key 'a' is given twice"),
    ("? [a]\n: 1", "a key is a section or a list"),
    (spec(name=...), "name: missing; expected a name"),
    (spec(name="Text"), "name: expected a name of small letters, digits and _, beginning with a letter; got 'Text'"),
    (spec(name="a\n"), "name: expected a name"),
    (spec(nam="x"), "nam: unknown key; did you mean `name`?"),
    (spec(precision="fp8"), "precision: expected one of fp32, fp16, int8; got 'fp8'"),
    (spec({"treshold": 0.3}), "detector.treshold: unknown key; did you mean `threshold`?"),
    (spec({"zzz": 0.3}), "detector.zzz: unknown key; known here are activation, binarize, "),
    (spec({"family": "yolo"}), "detector.family: expected auto or one of dbnet, detr, nms, yolov10, yolov5, yolov8, yolox; got 'yolo'"),
    (spec({"threshold": 1.5}), "detector.threshold: expected the lowest score that counts, 0 to 1; got 1.5"),
    (spec({"threshold": "0.5"}), "detector.threshold: expected the lowest score that counts, 0 to 1; got '0.5'"),
    (spec({"max_batch": 0}), "detector.max_batch: expected a whole number from 1; got 0"),
    (spec({"max_batch": True}), "detector.max_batch: expected a whole number from 1; got True"),
    (spec({"size": [64]}), "detector.size: expected two whole numbers, height and width in pixels, e.g. [640, 640]"),
    (spec({"size": 64}), "detector.size: expected two whole numbers"),
    (spec({"labels": []}), "detector.labels: expected a list of names, a file with one name a line, or metadata:KEY"),
    (spec({"labels": [0, 180]}), "got [0, 180]; quote names that YAML reads as something else"),
    (spec({"labels": ["a\nb"]}), "'a\\nb' is no name"),
    (spec({"normalize": {"std": [1, 0, 1]}}), "detector.normalize.std: expected three numbers above 0"),
    (spec({"normalize": {"colour": "hsv"}}), "detector.normalize.colour: expected rgb or bgr; got 'hsv'"),
    (spec({"binarize": 0.2}), "detector.binarize: expected only with family dbnet; got it with yolov8; remove it"),
    (spec({"candidates": 50}), "detector.candidates: expected at least detector.max_detections, 100; got 50"),
    (spec({"candidates": 4000}), "detector.candidates: expected a whole number, 1 to 3840; got 4000"),
    (spec(limits={"max_images": 9}), "limits.max_images: expected at most detector.max_batch, 8"),
    (spec() | {"detector": "net.onnx"}, "detector: expected a section with onnx, family, size, labels; got 'net.onnx'"),
    (spec(classifiers={"A": {}}), "classifiers.A: expected a name of small letters"),
    (spec(classifiers={"crop": {}}), "classifiers.crop: expected a name other than preprocess, detector, crop, label"),
    (spec(classifiers={"turn_a": {}}), "classifiers.turn_a: expected a name other than"),
    (spec(classifiers={"size": {"size": [1, 2.5]}}), "classifiers.size.size: expected two whole numbers"),
    (spec(classifiers={"c": {"onnx": ...}}), "classifiers.c.onnx: missing; expected the path of an ONNX file"),
    (spec(classifiers={"c": {"onnx": "no.onnx"}}), "classifiers.c.onnx: expected a file; there is neither "),
    (spec(classifiers={"c": {"head": "linear"}}), "c.head: expected one of ctc, embedding, sigmoid, softmax"),
    (spec(classifiers={"c": {"top_k": 3}}), "classifiers.c.top_k: expected at most the 2 labels; got 3"),
    (spec(classifiers={"c": {"head": "ctc", "top_k": 2}}), "c.top_k: expected only with head sigmoid, softmax; got it"),
    (spec(classifiers={"c": {"labels": ...}}), "classifiers.c.labels: missing; expected a list of names, a file"),
    (spec(classifiers={"c": {"head": "embedding"}}), "c.labels: expected only with head ctc, sigmoid, softmax; got it"),
    (spec(classifiers={"c": {"threshold": 0.5}}), "c.threshold: expected only with head sigmoid; got it with softmax"),
    (spec(classifiers={"c": {"normalize_embedding": True}}), "c.normalize_embedding: expected only with head embedding"),
    (spec(classifiers={"c": {"labels": ["a", "b", "a"]}}), "c.labels: expected names that differ; 'a' is given twice, as numbers 1 and 3"),
    (spec({"labels": ["a", "a"]}), "detector.labels: expected names that differ; 'a' is given twice"),
    (spec(classifiers={"c": {"padding": 1.5}}), "c.padding: expected a share of a box's width and height on each side"),
    (spec(classifiers={"c": {"resize": "crop"}}), "c.resize: expected one of stretch, pad, letterbox; got 'crop'"),
    (spec(classifiers={"c": LINE | {"widths": [320], "resize": "letterbox"}}), "c.resize: expected pad, as there are"),
    (spec({"min_size": -1}), "detector.min_size: expected pixels of the picture, a number from 0; got -1"),
    (spec({"decoded": True}), "detector.decoded: expected only with family yolox; got it with yolov8; remove it"),
    (spec({"activation": "softmax"}), "detector.activation: expected only with family detr; got it with yolov8"),
    (spec({"family": "detr", "activation": "relu"}), "detector.activation: expected sigmoid or softmax; got 'relu'"),
    (spec({"tile": {}}), "detector.tile.size: missing; expected two whole numbers"),
    (spec({"tile": {"size": [64, 64], "overlap": 1}}), "detector.tile.overlap: expected a share of a tile's side"),
    (spec({"family": "dbnet", "tile": {"size": [64, 64]}}), "detector.tile: expected only with a family that finds boxes"),
    (spec(classifiers={"a": {}, "a_edge": {}}), "classifiers.a_edge: expected a name that is not a's plus _edge"),
    (spec(classifiers={"c": {"classes": []}}), "classifiers.c.classes: expected names out of detector.labels; got []"),
    (spec(classifiers={"c": {"classes": ["z"]}}), "classes: expected names out of detector.labels (a, b); got 'z'"),
    (spec(classifiers={"c": {"upright": "z"}}), "c.upright: expected another classifier (there is none); got 'z'"),
    (spec(classifiers={"c": {"upright": "c"}}), "classifiers.c.upright: expected another classifier"),
    (spec(classifiers={"u": {}, "c": {"upright": "u", "resize": "pad"}}), "expected a classifier with the label '180'"),
    (spec(classifiers={"u": UPRIGHT, "c": {"upright": "u"}}), "c.resize: expected pad, as there is `upright`"),
    (spec(classifiers={"u": UPRIGHT | {"head": "ctc"}, "c": LINE | {"upright": "u"}}), "head softmax and no `upright`"),
    (
        spec(classifiers={"u": UPRIGHT, "v": UPRIGHT | {"upright": "u"}, "c": LINE | {"upright": "v"}}),
        "v has head softmax and `upright`",
    ),
    (spec(classifiers={"c": {"upright_threshold": 0.5}}), "upright_threshold: expected only beside `upright`"),
    (spec(classifiers={"c": LINE | {"widths": []}}), "classifiers.c.widths: expected ascending widths; got []"),
    (spec(classifiers={"c": LINE | {"widths": [320, 640, 480]}}), "widths: expected ascending widths"),
    (spec(classifiers={"c": LINE | {"widths": [320, 320]}}), "widths: expected ascending widths"),
    (spec(classifiers={"c": LINE | {"widths": [640]}}), "expected the first to be the width of `size`, 320; got 640"),
    (spec(classifiers={"c": LINE | {"widths": [320, 325]}}), "classifiers.c.widths: expected multiples of 8; got 325"),
    (spec(classifiers={"c": {"widths": [64]}}), "classifiers.c.resize: expected pad, as there are `widths`"),
    (spec(classifiers={"a": {}, "a_edge": {}}), "classifiers.a_edge: expected a name that is not a's plus _edge"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "said"), WRONG)
def test_says_what_is_wrong(parse: Any, data: dict[str, Any] | str, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        parse(data)
    assert len(caught.value.problems) == 1


def test_says_everything_at_once(parse: Any) -> None:
    with pytest.raises(SpecError) as caught:
        parse(spec({"sice": [1, 1], "iou": 2}, {"c": {"head": "x"}}))

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "detector.iou",
        "detector.sice",
        "classifiers.c.head",
    ]


def test_a_missing_file_names_both_places(parse: Any, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        parse(spec({"onnx": "no.onnx"}))

    assert str(tmp_path / "no.onnx") in str(caught.value)
    assert str(tmp_path / "elsewhere" / "no.onnx") in str(caught.value)


def test_a_pipeline_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="expected a pipeline file; No such file"):
        pipeline_from_file(tmp_path / "p.yaml")
