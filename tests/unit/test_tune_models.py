"""A setting in the configurations of a repository, what its weights allow, and what a trial says of its models."""

from __future__ import annotations

import json
from pathlib import Path

import cascade
import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tricade_build.build import build
from tricade_build.spec_file import pipeline_from_file
from tricade_tune import models
from tricade_tune.errors import BadPictures, BadPipelineModels
from tricade_tune.load import Round
from tricade_tune.measured import measured_from
from tricade_tune.models import configured, models_of
from tricade_tune.pictures import MOST, pictures_in
from tricade_tune.served import Moment, Work
from tricade_tune.setting import Setting, Step, setting_from
from tricade_tune.variants import variant

# Two classifiers, the second of which has a `turn`; one is called as the pipeline is.
UPRIGHT = cascade.colour_section(labels=["180", *list(cascade.COLOURS)[1:]])
CLASSIFIERS = {
    "up": UPRIGHT,
    "squares": cascade.colour_section(upright="up", resize="pad", max_batch=4),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return cascade.write(tmp_path / "source", classifiers=CLASSIFIERS)


@pytest.fixture
def repository(path: Path, tmp_path: Path) -> Path:
    build(path, repository=tmp_path / "built")
    return tmp_path / "built"


def config(repository: Path, file: str) -> ModelConfig:
    return text_format.Parse((repository / file).read_text(), ModelConfig())


def test_every_model_gets_its_part_of_a_setting(path, repository, tmp_path):
    start = setting_from(pipeline_from_file(path), plans=())
    assert start.processes == 2 + 1 + 2 * 2 + 3 + 1  # `turn` has as many as `crop`
    assert str(start["crop"]) == "2 (turn as many)"
    setting = (
        start.changed("preprocess", instances=3)
        .changed("crop", instances=5)
        .changed("detector", instances=2, max_delay_us=700)
        .changed("squares", instances=4, max_batch=16)
    )

    copy = variant(repository, tmp_path / "copy", configured(setting, "squares"))

    counts = {
        file.parent.name: config(copy, f"{file.parent.name}/config.pbtxt").instance_group[0].count
        for file in copy.glob("squares_*/config.pbtxt")
    }
    assert counts == {
        "squares_preprocess": 3, "squares_detector": 2, "squares_crop": 5, "squares_turn_squares": 5,
        "squares_colour": 1, "squares_up": 1, "squares_squares": 4, "squares_label": 1,
    }  # fmt: skip
    for file in ("squares_detector/config.pbtxt", "squares_detector/configs/onnxruntime.pbtxt"):
        assert config(copy, file).dynamic_batching.max_queue_delay_microseconds == 700
        assert config(copy, file).instance_group[0].count == 2
    assert config(copy, "squares_squares/config.pbtxt").max_batch_size == 16
    assert config(copy, "squares_turn_squares/config.pbtxt").parameters["max_batch"].string_value == "16"
    crop = config(copy, "squares_crop/config.pbtxt").parameters
    assert (crop["squares.max_batch"].string_value, crop["colour.max_batch"].string_value) == ("16", "8")
    assert config(copy, "squares/config.pbtxt") == config(repository, "squares/config.pbtxt")


def test_a_setting_says_what_differs(path):
    start = setting_from(pipeline_from_file(path), plans=())
    other = start.changed("crop", instances=3).changed("colour", max_delay_us=500, max_batch=16)

    assert start.since(start) == "as the file has it"
    assert other.since(start) == "crop 3; colour 500 µs, batch 16"


def test_the_file_s_own_setting_changes_nothing(path, repository, tmp_path):
    """As networks run on ONNX Runtime, which is what this machine has."""
    setting = setting_from(pipeline_from_file(path), plans=())

    copy = variant(repository, tmp_path / "copy", configured(setting, "squares"))

    for file in repository.glob("*/configs/*.pbtxt"):
        assert config(copy, str(file.relative_to(repository))) == config(repository, str(file.relative_to(repository)))
    for file in repository.glob("*/config.pbtxt"):
        if not (file.parent / "configs").exists():
            name = str(file.relative_to(repository))
            assert config(copy, name) == config(repository, name)


def test_a_copy_holds_the_pipeline_s_models_alone(path, repository, tmp_path):
    found = models_of(pipeline_from_file(path), path=path, repository=repository)
    (repository / "other" / "1").mkdir(parents=True)

    copy = variant(repository, tmp_path / "copy", models=found.names)

    assert {each.name for each in copy.iterdir()} == found.names == {
        "squares", "squares_preprocess", "squares_detector", "squares_crop", "squares_colour", "squares_up",
        "squares_squares", "squares_turn_squares", "squares_label",
    }  # fmt: skip
    assert (copy / "squares_colour" / "1" / "model.onnx").samefile(repository / "squares_colour/1/model.onnx")


def test_another_pipeline_s_repository_is_told(path, tmp_path):
    build(cascade.write(tmp_path / "smaller"), repository=tmp_path / "built")

    with pytest.raises(BadPipelineModels, match=r"there is no squares_squares; run: tricade build .*squares\.yaml"):
        models_of(pipeline_from_file(path), path=path, repository=tmp_path / "built")


def test_a_plan_s_batch_ends_where_its_profile_does(path, repository, monkeypatch):
    record = {"engine": {"profile": {"CROPS": [[1, 16, 16, 3], [8, 16, 16, 3], [24, 16, 16, 3]]}}}
    (repository / "squares_up" / "1" / "manifest.json").write_text(json.dumps({"model.plan": record}))
    monkeypatch.setattr(models, "misfit_of", lambda plan: "" if "squares_up" in str(plan) else "none")

    found = models_of(pipeline_from_file(path), path=path, repository=repository)

    assert found.plans == {"up"}
    assert found.most_batch == {"colour": 64, "up": 24, "squares": 64}


def test_a_batch_of_one_may_be_the_export_s(tmp_path):
    path = cascade.write(tmp_path / "source", colour={"max_batch": 1})
    build(path, repository=tmp_path / "built")

    found = models_of(pipeline_from_file(path), path=path, repository=tmp_path / "built")

    assert found.most_batch == {"colour": 1}


def test_what_a_trial_says_of_its_steps():
    """Two seconds, four answered calls of five; `turn` queues longer than `crop`, which its instances are counted by."""
    nothing = Work(0, 0, 0, (0, 0, 0, 0), 0)
    work = {
        "squares": Work(4, 4, 4, (0, 0, 0, 0), 0),
        "squares_crop": Work(4, 4, 4, (4, 1, 6, 1), 800),
        "squares_turn_up": Work(4, 4, 4, (40, 0, 2, 0), 100),
        "squares_up": Work(12, 90, 6, (6, 0, 24, 0), 1000),
    }
    before = Moment(10.0, dict.fromkeys(work, nothing), {"tritonserver": 1.0}, 0.0)
    after = Moment(12.0, work, {"tritonserver": 2.0, "squares_crop": 1.0}, 0.0)
    setting = Setting((Step("crop", 2, models=2), Step("up", 1, 0, 8)))
    found = measured_from(
        Round((3.0, 1.0, 2.0, 4.0), ("no",), 2.0, late=1), before, after, pipeline="squares", setting=setting
    )

    assert (found.p99_ms, found.missed, found.calls, found.late) == (float("inf"), pytest.approx(0.2), 5, 0.2)
    assert found.cpu_s_a_call == 0.5
    crop, up = found.steps["crop"], found.steps["up"]
    assert (crop.queue_ms, crop.compute_ms, crop.busy, crop.requests_a_call) == (10.0, 2.0, 0.2, 1.0)
    assert (up.queue_ms, up.compute_ms, up.busy) == (0.5, 2.0, 0.5)
    assert (up.requests_a_call, up.rows_an_execution) == (3.0, 15.0)


def test_pictures_are_those_of_the_folder_and_not_too_many(tmp_path):
    (tmp_path / "more").mkdir()
    for number in range(2 * MOST):
        (tmp_path / "more" / f"{number:04d}.JPG").write_bytes(b"%d" % number)
    (tmp_path / "note.txt").write_text("no picture")
    (tmp_path / ".thumbnails").mkdir()
    for hidden in (tmp_path / ".thumbnails" / "0000.jpg", tmp_path / "more" / ".0000.jpg"):
        hidden.write_bytes(b"hidden")

    assert [picture.encoded for picture in pictures_in(tmp_path)] == [
        b"%d" % number for number in range(0, 2 * MOST, 2)
    ]


def test_a_folder_without_pictures_is_told(tmp_path):
    with pytest.raises(BadPictures, match="holds none; put such as will be served there"):
        pictures_in(tmp_path)
