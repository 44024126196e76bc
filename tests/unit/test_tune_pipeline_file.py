"""A setting written into a pipeline file: its comments, its order, and nothing else."""

from __future__ import annotations

import difflib
import stat
from pathlib import Path

import cascade
import pytest
import yaml

from tricade_build.errors import SpecError
from tricade_build.spec_file import pipeline_from_file
from tricade_tune.errors import BadPipelineFile
from tricade_tune.pipeline_file import BESIDE, rewritten, text_from, write
from tricade_tune.setting import Setting, setting_from
from tricade_tune.yaml_text import with_value

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
def test_one_line_more_in_our_own_files_is_one_line_more(file):
    text = file.read_text(encoding="utf-8")
    for above in [("detector",), *(("classifiers", name) for name in yaml.safe_load(text).get("classifiers", {}))]:
        after = with_value(text, (*above, "max_delay_us"), 7, beside=BESIDE)

        assert changed_lines(text, after) == [f"+{'  ' * len(above)}max_delay_us: 7"]


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


# Three lines more and one that differs, for a setting with other numbers at `crop`, `detector` and the last classifier.
SIZE = ("    size: [320, 320]\n", "    size: [320, 320]\n    instances: 2\n")
BATCH = ("        max_batch: 8     # crops\n", "        max_batch: 16    # crops\n        instances: 2\n")
LAST = ("blue, purple]\n", "blue, purple]\ninstances: {crop: 3}\n")
SAME = (SIZE, BATCH, LAST)


def with_ends(ends: str, *texts: str) -> tuple[str, ...]:
    return tuple(text.replace("\n", ends) for text in texts)


def anchored(*lines: str) -> str:
    """PLAIN with an anchor at `colour`, and one more classifier."""
    text = PLAIN.replace("    colour:\n", "    colour: &colour\n")
    return text.replace("\n# The end.", "".join(f"    {line}\n" for line in lines) + "\n# The end.")


BRACES = """\
{name: squares, detector: {onnx: squares.onnx, size: [320, 320],
    family: yolov8, labels: [warm, cool]},   # on two lines
 "classifiers": {'colour': {onnx: "colour.onnx", head: 'softmax', size: [16,16], max_batch:   8 ,
 labels: [red, orange, yellow, rosé, green, cyan, blue, purple]}}}
"""

# How a file may be written, and what is replaced by what in it.
AWKWARD = {
    "as most are": (PLAIN, SAME),
    "in braces": (
        BRACES,
        [
            ("size: [320, 320],\n", "size: [320, 320], instances: 2,\n"),
            ("max_batch:   8 ,\n", "max_batch:   16, instances: 2 ,\n"),
            ("purple]}}}\n", "purple]}}, instances: {crop: 3}}\n"),
        ],
    ),
    "a comment in a list": (
        PLAIN.replace("[320, 320]", "[320,   # high\n           320]"),
        [("           320]\n", "           320]\n    instances: 2\n"), BATCH, LAST],
    ),
    "long lines": (PLAIN.replace("# red,", f"#{' red,' * 80}").replace("# Squares.", f"# {'Squares. ' * 80}"), SAME),
    "CRLF": (*with_ends("\r\n", PLAIN), [with_ends("\r\n", *each) for each in SAME]),
    "no line end": (PLAIN.removesuffix("\n"), SAME),
    "no line end behind a value": (
        PLAIN[: PLAIN.index("\n\n# The end.")],
        [SIZE, BATCH, ("blue, purple]", "blue, purple]\ninstances: {crop: 3}")],
    ),
    "a byte order mark": (f"\ufeff{PLAIN}", SAME),
    "spaces at ends": (PLAIN.replace("\n\n", "   \n \n").replace("# The end.", "# The end.   "), [
        SIZE, BATCH, ("blue, purple]   \n", "blue, purple]   \ninstances: {crop: 3}\n"),
    ]),
    "marks of its beginning and end": (f"%YAML 1.1\n---\n{PLAIN}...\n# Behind.\n", SAME),
    "what is merged": (
        anchored("shade:", "    <<: *colour", "    onnx: colour.onnx  # too"),
        [
            SIZE,
            (
                "  # too\n",
                "  # too\n        instances: 2\n        max_batch: 16\ninstances: {crop: 3}\n",
            ),
        ],
    ),
    "an alias": (
        anchored("shade: *colour   # too"),
        [
            SIZE,
            (
                "    shade: *colour   # too\n",
                "    shade: {<<: *colour, instances: 2, max_batch: 16}   # too\ninstances: {crop: 3}\n",
            ),
        ],
    ),
    "an alias of a value": (
        anchored("shade: {<<: *colour, max_batch: *batch}").replace("max_batch: 8 ", "max_batch: &batch 8 "),
        [
            SIZE,
            (
                "{<<: *colour, max_batch: *batch}\n",
                "{<<: *colour, max_batch: 16, instances: 2}\ninstances: {crop: 3}\n",
            ),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "edits"), AWKWARD.values(), ids=AWKWARD)
def test_no_other_line_is_touched_however_the_file_is_written(text, edits, path):
    path.write_bytes(text.encode())
    before, start = text_from(path), start_of(path)
    last = start.steps[-2].name
    choice = start.changed("crop", instances=3).changed("detector", instances=2)
    choice = choice.changed(last, instances=2, max_batch=16)

    write(path, before, start, choice)

    expected = text
    for old, new in edits:
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert path.read_bytes().decode() == expected
    assert start_of(path) == choice


@pytest.mark.parametrize("line", ["shade: *colour", "shade: {<<: *colour, head: softmax}"])
def test_what_others_share_is_not_changed(line, path):
    text = anchored(line)
    path.write_text(text, encoding="utf-8")
    before, start = text_from(path), start_of(path)

    with pytest.raises(BadPipelineFile, match=r"share no keys; classifiers\.colour\.instances cannot be changed alone"):
        write(path, before, start, start.changed("colour", instances=3))
    assert path.read_text(encoding="utf-8") == text
    assert sorted(each.name for each in path.parent.iterdir()) == ["colour.onnx", "squares.onnx", "squares.yaml"]


def test_a_network_that_leaves_its_delay_open_follows_the_others(path):
    text = PLAIN.replace("head: softmax", "head: softmax\n        max_delay_us:   # as the others")
    path.write_text(text, encoding="utf-8")
    before, start = text_from(path), start_of(path)
    both = start.changed("colour", max_delay_us=500).changed("detector", max_delay_us=500)

    write(path, before, start, both)

    assert changed_lines(before, path.read_text(encoding="utf-8")) == ["+batching: {max_delay_us: 500}"]
    assert start_of(path) == both


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
