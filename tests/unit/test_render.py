"""`tricade_build.wiring` and `render`: the models of a pipeline and the edges between them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig

from tricade.stage import Tensor, spec_from_config
from tricade_build.local import STAGES
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


def vector(dimensions: int) -> Shapes:
    outputs = (Tensor("EMBEDDING", "FP32", (dimensions,)),)
    return Shapes(Tensor("CROPS", "UINT8", (16, 24, 3)), outputs, classes=0)


NETWORK = {"onnx": "n.onnx", "size": (320, 640), "labels": ("a", "b")}
DETECTOR = {**NETWORK, "family": "yolov8", "max_batch": 4}
KIND = {**NETWORK, "head": "softmax", "size": (16, 24), "max_batch": 8, "top_k": 2, "classes": ("b",)}
UPRIGHT = {**NETWORK, "head": "softmax", "size": (48, 192), "resize": "pad", "labels": ("0", "180")}
LINE = {
    **NETWORK, "head": "ctc", "size": (48, 320), "resize": "pad", "widths": (320, 640), "upright": "up",
    "rotate_tall": 1.5, "max_batch": 16,
}  # fmt: skip

FACE = {"onnx": "n.onnx", "head": "embedding", "size": (16, 24), "padding": 0.25, "resize": "letterbox"}
TAGS = {**NETWORK, "head": "sigmoid", "size": (16, 24), "top_k": 2, "threshold": 0.4}
LOOK = {"onnx": "n.onnx", "head": "embedding", "size": (16, 24), "resize": "pad", "upright": "up"}

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
    "vectors": (
        {
            "detector": {**DETECTOR, "tile": {"size": (640, 640), "overlap": 0.25}, "min_size": 4},
            "classifiers": {"face": FACE, "tags": TAGS, "up": UPRIGHT, "look": LOOK},
        },
        {
            "detector": BOXES,
            "face": vector(8),
            "tags": classes((16, 24), 2),
            "up": classes((48, 192), 1),
            "look": vector(5),
        },
    ),
}


def rendered(data: Mapping[str, Any], shapes: Mapping[str, Shapes]) -> tuple[Pipeline, Files]:
    pipeline = Pipeline.model_validate_json(json.dumps({"name": "p", **data}), strict=True)
    names = {"detector": pipeline.detector.labels}
    names |= {n: c.labels for n, c in pipeline.classifiers.items() if c.labels is not None}
    wiring = wiring_of(pipeline, shapes, names)  # type: ignore[arg-type]
    return pipeline, render(wiring, origin="pipelines/p.yaml", names=names)  # type: ignore[arg-type]


def _without_ring(config: Any) -> dict[str, str]:
    return {"ring_bytes": "0"} if config.backend == "preprocess" else {}


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
        ("vectors", ["preprocess", "detector", "crop", "face", "tags", "up", "turn_look", "look", "label"]),
    ],
)
def test_models_are_the_ensembles_steps(case: str, steps: list[str]) -> None:
    _, files = rendered(*PIPELINES[case])
    models = configs(files)

    names = [step.model_name for step in models["p"].ensemble_scheduling.step]
    assert names == [f"p_{step}" for step in steps]
    assert all(step.model_version == -1 for step in models["p"].ensemble_scheduling.step)
    assert {path.parts[0] for path in files} == {"p", *names}
    stages = {name for name in names if models[name].backend}
    kept = {path for path in files if path.name == ".gitkeep"}
    assert kept == {PurePosixPath(name, "1", ".gitkeep") for name in ("p", *stages)}  # networks get weights there
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


def test_the_tensors_of_an_embedding() -> None:
    _, files = rendered(*PIPELINES["vectors"])
    models = configs(files)
    steps = {step.model_name: step for step in models["p"].ensemble_scheduling.step}

    kinds = {t.name: (DataType.Name(t.data_type), list(t.dims)) for t in models["p"].output if "FACE" in t.name}
    assert kinds == {"FACE_EMBEDDING": ("TYPE_FP32", [-1, 8])}
    assert dict(steps["p_face"].output_map) == {"EMBEDDING": "FACE_EDGE_EMBEDDING"}
    given = {mine: outer for mine, outer in steps["p_label"].input_map.items() if mine.startswith("FACE")}
    assert given == {
        "FACE_SENT": "FACE_SENT",
        "FACE_EMBEDDING": "FACE_EDGE_EMBEDDING",
    }
    assert steps["p_label"].output_map["FACE_EMBEDDING"] == "FACE_EMBEDDING"
    assert "p_label/face.txt" not in map(str, files)


@pytest.mark.parametrize("case", PIPELINES)
def test_every_stage_takes_its_parameters(case: str, tmp_path: Path) -> None:
    """What the stages refuse, unknown and missing parameters, is not rendered."""
    _, files = rendered(*PIPELINES[case])
    for path, data in files.items():
        (tmp_path / path.parent).mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)

    for name, config in configs(files).items():
        if config.backend in STAGES:
            as_json = json_format.MessageToDict(config, preserving_proto_field_name=True)
            spec = spec_from_config(as_json, directory=tmp_path / name, version=1)
            STAGES[config.backend].load(
                dataclasses.replace(spec, parameters={**spec.parameters, **_without_ring(config)})
            ).close()


def test_a_network_is_a_plan_and_beside_it_an_onnx_file() -> None:
    _, files = rendered(*PIPELINES["one classifier"])
    plan, onnx = configs(files)["p_kind"], configs(files)["p_kind/configs"]

    assert (plan.platform, plan.backend, plan.default_model_filename) == ("tensorrt_plan", "", "model.plan")
    assert (onnx.platform, onnx.backend, onnx.default_model_filename) == ("", "onnxruntime", "model.onnx")
    for config in (plan, onnx):
        assert (config.name, config.max_batch_size) == ("p_kind", 8)
        assert config.HasField("dynamic_batching")
        assert config.dynamic_batching.max_queue_delay_microseconds == 0
        assert [(t.name, list(t.dims)) for t in config.input] == [("CROPS", [16, 24, 3])]
        assert [(t.name, list(t.dims)) for t in config.output] == [("INDEX", [2]), ("SCORE", [2])]
    assert [group.count for group in plan.instance_group] == [2]
    assert [group.count for group in onnx.instance_group] == [1]


def test_instances_and_delays_are_a_network_s_own() -> None:
    data, shapes = PIPELINES["one classifier"]
    mine = {"kind": {**data["classifiers"]["kind"], "instances": 3, "max_delay_us": 70}}
    _, files = rendered({**data, "classifiers": mine, "batching": {"max_delay_us": 40}}, shapes)
    found = configs(files)

    for name, count, delay_us in (("p_kind", 3, 70), ("p_kind/configs", 3, 70), ("p_detector/configs", 1, 40)):
        assert [group.count for group in found[name].instance_group] == [count]
        assert found[name].dynamic_batching.max_queue_delay_microseconds == delay_us


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
    ("vectors", "p_preprocess"): {
        "size": "320,640", "resize": "letterbox", "pad": "114", "max_images": "4", "max_bytes": "20000000",
        "max_pixels": "50000000", "ring_bytes": "67108864", "ring_slots": "32", "tile": "640,640", "overlap": "0.25",
        "max_tiles": "4",
    },
    ("vectors", "p_crop"): {
        "family": "candidates", "size": "320,640", "resize": "letterbox", "threshold": "0.25", "iou": "0.5",
        "max_detections": "100", "min_size": "4.0",
        "face.size": "16,24", "face.resize": "letterbox", "face.pad": "0", "face.max_batch": "8",
        "face.model": "p_face", "face.padding": "0.25", "face.answers": "EMBEDDING",
        "tags.size": "16,24", "tags.resize": "stretch", "tags.pad": "0", "tags.max_batch": "8", "tags.model": "p_tags",
        "up.size": "48,192", "up.resize": "pad", "up.pad": "0", "up.max_batch": "8", "up.model": "p_up",
        "look.size": "16,24", "look.resize": "pad", "look.pad": "0", "look.max_batch": "8", "look.model": "p_look",
        "look.packed": "true", "look.answers": "EMBEDDING",
    },
    ("vectors", "p_turn_look"): {
        "classifier": "look", "upright": "up", "turned": "1", "threshold": "0.9", "size": "16,24", "pad": "0",
        "max_batch": "8", "model": "p_look", "answers": "EMBEDDING",
    },
    ("vectors", "p_label"): {
        "detector.labels": "detector.txt", "face.head": "embedding", "face.dim": "8",
        "tags.head": "sigmoid", "tags.labels": "tags.txt", "tags.top_k": "2", "tags.threshold": "0.4",
        "up.head": "softmax", "up.labels": "up.txt", "up.top_k": "1", "look.head": "embedding", "look.dim": "5",
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
