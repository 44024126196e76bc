"""A setting written into a pipeline file: its comments, its order, and nothing else."""

from __future__ import annotations

import difflib
import stat
from pathlib import Path

import cascade
import pytest

from tricade_build.errors import SpecError
from tricade_build.spec_file import pipeline_from_file
from tricade_tune.errors import BadPipelineFile
from tricade_tune.pipeline_file import rewritten, text_from, write
from tricade_tune.setting import Setting, setting_from

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "pipelines").glob("*.yaml"))

PLAIN = """\
# Squares.
name: squares

detector:                # finds
    onnx: squares.onnx   # beside this file
    # The side of a picture.
    size: [320, 320]
    family: yolov8
    labels:
      - warm             # red, orange
      - cool

# One kind of classifier.
classifiers:
    colour:
        onnx: colour.onnx
        head: softmax
        size: [16, 16]
        max_batch: 8     # crops
        labels: ["red", orange, yellow, rosé, green, cyan, blue, purple]

# The end.
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cascade.write(tmp_path)
    (tmp_path / "squares.yaml").write_text(PLAIN, encoding="utf-8")
    return tmp_path / "squares.yaml"


def start_of(path: Path) -> Setting:
    return setting_from(pipeline_from_file(path), plans=())


def changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_our_own_files_stay_as_they_are_where_nothing_differs(file):
    text, setting = file.read_text(encoding="utf-8"), Setting(())

    assert rewritten(text, setting, setting) == text


def test_only_what_differs_is_written(path):
    before, start = text_from(path), start_of(path)
    choice = start.changed("crop", instances=3).changed("detector", instances=2).changed("colour", max_batch=16)

    write(path, before, start, choice)

    assert changed_lines(before, path.read_text(encoding="utf-8")) == [
        "+    instances: 2",
        "-        max_batch: 8     # crops",
        "+        max_batch: 16    # crops",
        "+instances: {crop: 3}",
    ]
    assert start_of(path) == choice
    assert "# The side of a picture.\n    size: [320, 320]\n    instances: 2\n" in path.read_text(encoding="utf-8")


def test_what_the_file_says_already_is_changed_where_it_stands(path):
    known = "instances: {preprocess: 2, crop: 2, label: 1}   # of the stages"
    text = PLAIN.replace("# One kind", f"{known}\n\n# One kind")
    path.write_text(text, encoding="utf-8")
    start = start_of(path)

    after = rewritten(text, start, start.changed("crop", instances=5))

    assert changed_lines(text, after) == [f"-{known}", f"+{known.replace('crop: 2', 'crop: 5')}"]


def test_a_delay_that_all_share_goes_to_batching_and_one_of_its_own_to_its_network(path):
    before, start = text_from(path), start_of(path)
    alone = start.changed("detector", max_delay_us=500)
    together = alone.changed("colour", max_delay_us=500)

    assert changed_lines(before, rewritten(before, start, alone)) == ["+    max_delay_us: 500"]
    assert changed_lines(before, rewritten(before, start, together)) == ["+batching: {max_delay_us: 500}"]
    write(path, before, start, together)
    assert start_of(path) == together


def test_a_network_with_a_delay_of_its_own_keeps_it(tmp_path):
    path = cascade.write(tmp_path, colour={"max_delay_us": 300}, batching={"max_delay_us": 100})
    before, start = text_from(path), start_of(path)
    choice = start.changed("colour", max_delay_us=0)

    write(path, before, start, choice)

    assert changed_lines(before, path.read_text(encoding="utf-8")) == [
        "-    max_delay_us: 300",
        "+    max_delay_us: 0",
    ]
    assert start_of(path) == choice


def test_a_plan_s_instances_are_written_only_where_they_change(path):
    """Nothing in the file says that the detector runs two."""
    before = text_from(path)
    start = setting_from(pipeline_from_file(path), plans=("detector",))
    assert start["detector"].instances == 2

    write(path, before, start, start.changed("label", instances=2))

    assert changed_lines(before, path.read_text(encoding="utf-8")) == ["+instances: {label: 2}"]


def test_comments_that_would_be_lost_are_named_before_anything_is_tried(path):
    path.write_text(PLAIN.replace("[320, 320]", "[320,   # high\n           320]"), encoding="utf-8")

    with pytest.raises(BadPipelineFile, match=r"'# high' stands inside"):
        text_from(path)


def test_what_is_no_pipeline_file_is_told_as_a_build_tells_it(path):
    path.write_text(PLAIN + "name: again\n", encoding="utf-8")

    with pytest.raises(SpecError, match="key 'name' is given twice"):
        text_from(path)


def test_a_file_that_has_changed_meanwhile_stays_as_it_is(path):
    before, start = text_from(path), start_of(path)
    path.write_text(f"{PLAIN}# Mine.\n", encoding="utf-8")

    with pytest.raises(BadPipelineFile, match="has changed meanwhile"):
        write(path, before, start, start.changed("crop", instances=3))
    assert path.read_text(encoding="utf-8") == f"{PLAIN}# Mine.\n"


def test_sections_that_share_their_keys_are_not_written(path):
    shared = PLAIN.replace("    colour:\n", "    colour: &colour\n")
    shared = shared.replace("\n# The end.", "    shade: *colour\n\n# The end.")
    path.write_text(shared, encoding="utf-8")
    before, start = text_from(path), start_of(path)

    with pytest.raises(BadPipelineFile, match="share no keys"):
        write(path, before, start, start.changed("shade", instances=3))
    assert path.read_text(encoding="utf-8") == shared
    assert sorted(each.name for each in path.parent.iterdir()) == ["colour.onnx", "squares.onnx", "squares.yaml"]


def test_the_file_keeps_its_mode_and_a_link_stays_one(path):
    path.chmod(0o640)
    link = path.with_name("link.yaml")
    link.symlink_to(path.name)
    before, start = text_from(link), start_of(link)

    write(link, before, start, start.changed("crop", instances=3))

    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert start_of(path)["crop"].instances == 3


def test_what_needs_no_change_is_not_touched(path: Path) -> None:
    """Whatever the file looks like."""
    odd = PLAIN.replace("max_batch: 8     # crops", "max_batch:   8").replace("\n", "\r\n").encode()
    path.write_bytes(odd)
    start = start_of(path)
    write(path, text_from(path), start, start)
    assert path.read_bytes() == odd


def test_lines_end_as_they_did(path: Path) -> None:
    path.write_bytes(PLAIN.replace("\n", "\r\n").encode())
    start = start_of(path)
    write(path, text_from(path), start, start.changed("crop", instances=5))
    written = path.read_bytes()
    assert written.count(b"\r\n") == written.count(b"\n") > 10
    assert pipeline_from_file(path).instances.crop == 5
