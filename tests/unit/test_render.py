"""`tricade_build.wiring` and `render`: the models of a pipeline and the edges between them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig

from tricade.stage import Tensor
from tricade_build.render import Files, render
from tricade_build.shapes import Shapes
from tricade_build.spec import Pipeline
from tricade_build.wiring import wiring_of

BOXES = Shapes(Tensor("TENSOR", "UINT8", (320, 640, 3)), (Tensor("CANDIDATES", "FP32", (300, 6)),), classes=2)
MAP = Shapes(Tensor("TENSOR", "UINT8", (320, 640, 3)), (Tensor("MAP", "UINT8", (320, 640)),), classes=1)


def classes(size: tuple[int, int], k: int) -> Shapes:
    outputs = (Tensor("INDEX", "INT32", (k,)), Tensor("SCORE", "FP32", (k,)))
    return Shapes(Tensor("CROPS", "UINT8", (*size, 3)), outputs, classes=3)


def line() -> Shapes:
    outputs = (Tensor("INDEX", "INT32", (-1,)), Tensor("SCORE", "FP32", (-1,)))
    return Shapes(Tensor("CROPS", "UINT8", (48, -1, 3)), outputs, classes=3)


NETWORK = {"onnx": "n.onnx", "size": (320, 640), "labels": ("a", "b")}
DETECTOR = {**NETWORK, "family": "yolov8", "max_batch": 4}
KIND = {**NETWORK, "head": "softmax", "size": (16, 24), "max_batch": 8, "top_k": 2, "classes": ("b",)}
UPRIGHT = {**NETWORK, "head": "softmax", "size": (48, 192), "resize": "pad", "labels": ("0", "180")}
LINE = {
    **NETWORK, "head": "ctc", "size": (48, 320), "resize": "pad", "widths": (320, 640), "upright": "up",
    "rotate_tall": 1.5, "max_batch": 16,
}  # fmt: skip

PIPELINES: dict[str, tuple[dict[str, Any], dict[str, Shapes]]] = {
    "detector only": ({"detector": DETECTOR}, {"detector": BOXES}),
    "one classifier": (
        {"detector": DETECTOR, "classifiers": {"kind": KIND}},
        {"detector": BOXES, "kind": classes((16, 24), 2)},
    ),
    "text": (
        {"detector": {**DETECTOR, "family": "dbnet"}, "classifiers": {"line": LINE, "up": UPRIGHT}},
        {"detector": MAP, "up": classes((48, 192), 1), "line": line()},
    ),
}


def rendered(data: Mapping[str, Any], shapes: Mapping[str, Shapes]) -> tuple[Pipeline, Files]:
    pipeline = Pipeline.model_validate_json(json.dumps({"name": "p", **data}), strict=True)
    names = {"detector": pipeline.detector.labels} | {n: c.labels for n, c in pipeline.classifiers.items()}
    wiring = wiring_of(pipeline, shapes, names)  # type: ignore[arg-type]
    return pipeline, render(wiring, origin="pipelines/p.yaml", max_delay_us=500, names=names)  # type: ignore[arg-type]


def configs(files: Files) -> dict[str, Any]:
    return {
        str(path.parent): text_format.Parse(data.decode(), ModelConfig())
        for path, data in files.items()
        if path.suffix == ".pbtxt"
    }


def edges(config: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """A model's inputs and outputs by name: type and full shape, the batch as -1."""
    batch = (-1,) if config.max_batch_size else ()
    inputs, outputs = (
        {tensor.name: (tensor.data_type, *batch, *tensor.dims) for tensor in tensors}
        for tensors in (config.input, config.output)
    )
    return inputs, outputs


@pytest.mark.parametrize("case", PIPELINES)
def test_every_edge_joins_equal_types_and_shapes(case: str) -> None:
    _, files = rendered(*PIPELINES[case])
    models = configs(files)
    ensemble = models["p"]
    made, wanted = edges(ensemble)

    for step in ensemble.ensemble_scheduling.step:
        inputs, outputs = edges(models[step.model_name])
        assert (set(step.input_map), set(step.output_map)) == (set(inputs), set(outputs))
        for mine, outer in step.input_map.items():
            assert made[outer] == inputs[mine], f"{step.model_name}.{mine}"
        for mine, outer in step.output_map.items():
            assert outer not in made, f"two steps make {outer}"
            made[outer] = outputs[mine]
    assert {name: made[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("case", "steps"),
    [
        ("detector only", ["preprocess", "detector", "crop", "label"]),
        ("one classifier", ["preprocess", "detector", "crop", "kind", "label"]),
        ("text", ["preprocess", "detector", "crop", "up", "turn_line", "line", "label"]),
    ],
)
def test_models_are_the_ensembles_steps(case: str, steps: list[str]) -> None:
    _, files = rendered(*PIPELINES[case])
    models = configs(files)

    names = [step.model_name for step in models["p"].ensemble_scheduling.step]
    assert names == [f"p_{step}" for step in steps]
    assert all(step.model_version == -1 for step in models["p"].ensemble_scheduling.step)
    assert {path.parts[0] for path in files} == {"p", *names}
    assert {PurePosixPath(name, "1", ".gitkeep") for name in ("p", *names)} <= set(files)
    assert all(models[name].name == name for name in ("p", *names))


def test_the_ensembles_own_tensors() -> None:
    _, files = rendered(*PIPELINES["one classifier"])
    ensemble = configs(files)["p"]

    kinds = {t.name: (DataType.Name(t.data_type), list(t.dims)) for t in (*ensemble.input, *ensemble.output)}
    assert kinds == {
        "IMAGE": ("TYPE_STRING", [-1]),
        "THRESHOLD": ("TYPE_FP32", [1]),
        "COUNT": ("TYPE_INT32", [-1]),
        "TRUNCATED": ("TYPE_INT32", [-1]),
        "SIZE": ("TYPE_INT32", [-1, 2]),
        "BOXES": ("TYPE_FP32", [-1, 4]),
        "CORNERS": ("TYPE_FP32", [-1, 4, 2]),
        "SCORES": ("TYPE_FP32", [-1]),
        "LABELS": ("TYPE_STRING", [-1]),
        "KIND_LABELS": ("TYPE_STRING", [-1, 2]),
        "KIND_SCORES": ("TYPE_FP32", [-1, 2]),
    }
    assert {t.name: t.optional for t in ensemble.input} == {"IMAGE": False, "THRESHOLD": True}
    assert (ensemble.platform, ensemble.max_batch_size) == ("ensemble", 0)


def test_a_network_is_a_plan_and_beside_it_an_onnx_file() -> None:
    _, files = rendered(*PIPELINES["one classifier"])
    plan, onnx = configs(files)["p_kind"], configs(files)["p_kind/configs"]

    assert (plan.platform, plan.backend, plan.default_model_filename) == ("tensorrt_plan", "", "model.plan")
    assert (onnx.platform, onnx.backend, onnx.default_model_filename) == ("", "onnxruntime", "model.onnx")
    for config in (plan, onnx):
        assert (config.name, config.max_batch_size) == ("p_kind", 8)
        assert config.dynamic_batching.max_queue_delay_microseconds == 500
        assert [(t.name, list(t.dims)) for t in config.input] == [("CROPS", [16, 24, 3])]
        assert [(t.name, list(t.dims)) for t in config.output] == [("INDEX", [2]), ("SCORE", [2])]
        assert [group.count for group in config.instance_group] == [1]


PARAMETERS = {
    ("one classifier", "p_preprocess"): {
        "size": "320,640", "resize": "letterbox", "pad": "114", "max_images": "4", "max_bytes": "20000000",
        "max_pixels": "50000000", "ring_bytes": "67108864", "ring_slots": "32",
    },
    ("detector only", "p_crop"): {
        "family": "candidates", "size": "320,640", "resize": "letterbox", "threshold": "0.25", "iou": "0.5",
        "max_detections": "100",
    },
    ("one classifier", "p_crop"): {
        "family": "candidates", "size": "320,640", "resize": "letterbox", "threshold": "0.25", "iou": "0.5",
        "max_detections": "100", "kind.size": "16,24", "kind.resize": "stretch", "kind.pad": "0",
        "kind.max_batch": "8", "kind.model": "p_kind", "kind.classes": "1",
    },
    ("text", "p_crop"): {
        "family": "dbnet", "size": "320,640", "resize": "letterbox", "threshold": "0.25", "max_detections": "100",
        "binarize": "0.3", "unclip": "1.6", "dilate": "true",
        "up.size": "48,192", "up.resize": "pad", "up.pad": "0", "up.max_batch": "8", "up.model": "p_up",
        "line.size": "48,320", "line.resize": "pad", "line.pad": "0", "line.max_batch": "16",
        "line.model": "p_line", "line.widths": "320,640", "line.rotate_tall": "1.5", "line.packed": "true",
    },
    ("text", "p_turn_line"): {
        "classifier": "line", "upright": "up", "turned": "1", "threshold": "0.9", "size": "48,320", "pad": "0",
        "widths": "320,640", "max_batch": "16", "model": "p_line",
    },
    ("detector only", "p_label"): {"detector.labels": "detector.txt"},
    ("one classifier", "p_label"): {
        "detector.labels": "detector.txt", "kind.head": "softmax", "kind.labels": "kind.txt",
        "kind.top_k": "2",
    },
}  # fmt: skip


@pytest.mark.parametrize(("case", "model"), PARAMETERS)
def test_parameters_of_a_stage(case: str, model: str) -> None:
    _, files = rendered(*PIPELINES[case])
    config = configs(files)[model]

    assert {name: p.string_value for name, p in config.parameters.items()} == PARAMETERS[case, model]
    assert config.backend == model.split("_")[1]


def test_stages_run_in_as_many_processes_as_the_pipeline_says() -> None:
    data, shapes = PIPELINES["text"]
    _, files = rendered(data | {"instances": {"preprocess": 3, "crop": 4, "label": 5}}, shapes)

    counts = {name: [(g.count, g.kind) for g in config.instance_group] for name, config in configs(files).items()}
    cpu = 2
    assert counts["p_preprocess"] == [(3, cpu)]
    assert counts["p_crop"] == counts["p_turn_line"] == [(4, cpu)]
    assert counts["p_label"] == [(5, cpu)]


def test_label_files_have_one_name_a_line() -> None:
    _, files = rendered(*PIPELINES["text"])

    labels = {path.name: data for path, data in files.items() if path.match("p_label/*.txt")}
    assert labels == {"detector.txt": b"a\nb\n", "up.txt": b"0\n180\n", "line.txt": b"a\nb\n"}


def test_the_same_pipeline_renders_the_same_bytes_and_says_where_they_are_from() -> None:
    first, again = rendered(*PIPELINES["text"])[1], rendered(*PIPELINES["text"])[1]

    assert first == again
    for path, data in first.items():
        if path.suffix == ".pbtxt":
            assert data.startswith(b"# Pipeline p: written by `tricade build pipelines/p.yaml`;")
