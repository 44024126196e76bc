"""`tricade_build.build`: all of a pipeline's models, or none of them."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import cascade
import numpy as np
import onnx
import pytest

from tricade.versions import versions
from tricade_build.build import build
from tricade_build.errors import BuildError, FoldError, RepositoryError, SpecError
from tricade_build.local import LocalPipeline
from tricade_build.made import Made, Work
from tricade_build.networks import Job
from tricade_build.targets import TARGETS

SECOND = {"shade": cascade.colour_section(top_k=3, max_batch=4)}


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's contents and time of writing."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def contents(tree: dict[str, tuple[bytes, int]]) -> dict[str, bytes]:
    return {name: data for name, (data, _) in tree.items()}


def write_files(folder: Path) -> None:
    """Label files and networks, most of which are wrong for `colour`."""
    for name, labels in {
        "warm": "warm\r\ncool\n",
        "seven": "a\nb\nc\nd\ne\nf\ng\n",
        "nine": "a\nb\nc\nd\ne\nf\ng\nh\ni",
        "gap": "a\n\nc\nd\ne\nf\ng\nh\n",
        "twice": "a\nb\nc\nd\ne\nf\ng\na\n",
    }.items():
        (folder / f"{name}.txt").write_text(labels)
    static, apart, new, ir = (cascade.colour_model() for _ in range(4))
    static.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    new.opset_import[0].version = 99
    ir.ir_version = 99
    for name, model in {"static": static, "new": new, "ir": ir, "named": named({0: "a", 1: "b", 2: "c"})}.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    options = {"save_as_external_data": True, "location": "gone.bin", "size_threshold": 0}
    onnx.save(apart, folder / "apart.onnx", **options)
    (folder / "gone.bin").unlink()


def named(names: dict[int, str]) -> onnx.ModelProto:
    """The detector with its classes inside, as Ultralytics writes them."""
    model = cascade.detector_model()
    onnx.helper.set_model_props(model, {"names": str(names), "task": "detect"})
    return model


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return tmp_path / "repository"


@pytest.mark.parametrize("count", [0, 1, 40, 400])
@pytest.mark.parametrize("scale", [1, 2])
def test_what_is_built_answers_exactly(tmp_path: Path, repository: Path, count: int, scale: int) -> None:
    build(cascade.write(tmp_path), repository=repository)
    objects = cascade.objects(count, seed=count)
    image = np.array([cascade.picture(objects, scale=scale)], np.object_)

    pipeline = LocalPipeline(repository, "squares")
    try:
        found = pipeline({"IMAGE": image})
    finally:
        pipeline.close()

    expected = cascade.expected(objects, scale=scale)
    assert found["COUNT"].tolist() == [len(expected.labels)]
    assert found["TRUNCATED"].tolist() == [expected.truncated]
    np.testing.assert_allclose(found["BOXES"], expected.boxes, atol=0.01)
    np.testing.assert_allclose(found["SCORES"], expected.scores, atol=1e-4)
    assert [name.decode() for name in found["LABELS"]] == list(expected.labels)
    assert [names[0].decode() for names in found["COLOUR_LABELS"]] == list(expected.colours)
    assert np.all(found["COLOUR_SCORES"] > 0.99)


def test_a_second_build_changes_nothing(tmp_path: Path, repository: Path) -> None:
    path = cascade.write(tmp_path)
    first = build(path, repository=repository)
    before = tree(repository)

    second = build(path, repository=repository)

    assert (first.built, first.kept) == (("squares_detector", "squares_colour"), ())
    assert (second.built, second.kept, second.removed) == ((), ("squares_detector", "squares_colour"), ())
    assert tree(repository) == before
    assert versions(repository / "squares_colour") == (1,)


def test_what_is_built_again_is_a_new_version_and_the_one_before_stays(tmp_path: Path, repository: Path) -> None:
    build(cascade.write(tmp_path), repository=repository)
    first = tree(repository / "squares_colour" / "1")

    for k in (2, 3):
        build(cascade.write(tmp_path, colour={"top_k": k}), repository=repository)
        if k == 2:
            assert tree(repository / "squares_colour" / "1") == first

    assert versions(repository / "squares_colour") == (2, 3)
    assert versions(repository / "squares_detector") == (1,)
    LocalPipeline(repository, "squares").close()  # of the configuration's top_k


def test_a_version_without_weights_is_followed_by_one_with_them(tmp_path: Path, repository: Path) -> None:
    """Checkouts have had such folders."""
    build(cascade.write(tmp_path), repository=repository)
    for file in (repository / "squares_colour" / "1").iterdir():
        file.unlink()
    (repository / "squares_colour" / "1" / ".gitkeep").touch()

    assert build(cascade.write(tmp_path), repository=repository).built == ("squares_colour",)
    assert versions(repository / "squares_colour") == (1, 2)
    (repository / "squares_colour" / "2" / ".gitkeep").touch()
    assert build(cascade.write(tmp_path), repository=repository).built == ()


def test_two_builds_at_once_take_turns(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, at_work, go_on = cascade.write(tmp_path), threading.Event(), threading.Event()
    heard: list[str] = []
    target = TARGETS["onnxruntime"]

    def slow(job: Job, work: Work) -> dict[str, Made]:
        at_work.set()
        assert go_on.wait(30)
        return target.make(job, work)

    def report(what: str, share: float | None = None, /) -> None:
        heard.append(what)
        go_on.set()

    monkeypatch.setitem(TARGETS, "onnxruntime", replace(target, make=slow))
    with ThreadPoolExecutor() as pool:
        one = pool.submit(build, path, repository=repository)
        assert at_work.wait(30)
        other = pool.submit(build, path, repository=repository, report=report)
        networks = ("squares_detector", "squares_colour")
        assert one.result(30).built == networks
        assert other.result(30).kept == networks
    assert heard[0] == f"waiting for another build of {repository}"
    assert not list(repository.glob(".tricade-*"))


@pytest.mark.parametrize(
    ("change", "built"),
    [
        ({}, ()),
        ({"detector": {"threshold": 0.4, "max_batch": 4}}, ()),  # not in the graph
        ({"detector": {"labels": ["hot", "cold"]}}, ()),
        ({"colour": {"top_k": 2}}, ("squares_colour",)),
        ({"detector": {"candidates": 300}}, ("squares_detector",)),
        ({"colour": {"normalize": {"colour": "bgr"}}}, ("squares_colour",)),
    ],
)
def test_only_what_changed_is_built_again(
    tmp_path: Path, repository: Path, change: Any, built: tuple[str, ...]
) -> None:
    build(cascade.write(tmp_path), repository=repository)

    assert build(cascade.write(tmp_path, **change), repository=repository).built == built


def test_another_network_in_the_same_file_and_damaged_weights_are_built_again(tmp_path: Path, repository: Path) -> None:
    path = cascade.write(tmp_path)
    build(path, repository=repository)
    other = cascade.detector_model()
    other.doc_string = "another one"
    onnx.save(other, tmp_path / "squares.onnx")
    (repository / "squares_colour" / "1" / "model.onnx").write_bytes(b"half a fi")

    assert build(path, repository=repository).built == ("squares_detector", "squares_colour")
    assert build(path, repository=repository).built == ()


def test_weights_in_a_file_of_their_own_count_as_the_networks(tmp_path: Path, repository: Path) -> None:
    path = cascade.write(tmp_path)
    options = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save(cascade.colour_model(), tmp_path / "colour.onnx", **options)
    build(path, repository=repository)
    assert build(path, repository=repository).built == ()

    weights = bytearray((tmp_path / "weights.bin").read_bytes())
    weights[0] ^= 1
    (tmp_path / "weights.bin").write_bytes(weights)

    assert build(path, repository=repository).built == ("squares_colour",)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            {"detector": {"labels": ["one"]}},
            FoldError,
            r"detector: expected an output \[M, 5, anchors\].*found \[M, 6, 400\]",
        ),
        ({"colour": {"labels": ["one"]}}, FoldError, "classifiers.colour: expected 8 labels.*got 1"),
        (
            {"colour": {"labels": "metadata:names"}},
            FoldError,
            "classifiers.colour: expected metadata 'names' in colour.onnx",
        ),
        ({"colour": {"labels": "seven.txt"}}, FoldError, "classifiers.colour: expected 8 labels.*got 7"),
        ({"colour": {"labels": "nine.txt"}}, FoldError, "classifiers.colour: expected 8 labels.*got 9"),
        ({"colour": {"labels": "gap.txt"}}, FoldError, "colour: .*gap.txt: expected a name at each place; number 2 is"),
        ({"colour": {"labels": "twice.txt"}}, FoldError, "twice.txt: .*differ; 'a' is given twice, as numbers 1 and 8"),
        (
            {"detector": {"labels": "twice.txt"}},
            FoldError,
            "detector: .*twice.txt: expected names that differ; 'a' is given twice",
        ),
        ({"colour": {"onnx": "static.onnx"}}, FoldError, r"classifiers.colour: .*dynamic batch, .*\[1, 3, 16, 16\]"),
        ({"colour": {"onnx": "apart.onnx"}}, FoldError, "the weights of apart.onnx in gone.bin beside it"),
        ({"colour": {"onnx": "new.onnx"}}, FoldError, "classifiers.colour: expected opset 11 to .*found 99"),
        ({"colour": {"onnx": "ir.onnx"}}, FoldError, "classifiers.colour: expected IR version .*found 99"),
        ({"detector": {"family": "yolov5"}}, FoldError, r"detector: .*found \[M, 6, 400\]; family yolov8 fits"),
        (
            {"detector": {"family": "auto", "labels": ["one"]}},
            FoldError,
            r"detector.family: expected a layout of these, found \[M, 6, 400\]",
        ),
        (
            {"detector": {"family": "auto", "unclip": 2}},
            SpecError,
            "detector.unclip: .*family dbnet; got it with yolov8",
        ),
        (
            {"detector": {"onnx": "named.onnx"}},
            FoldError,
            "expected 3 labels, as named.onnx names 3 classes itself; got 2; `labels: metadata:names`",
        ),
        ({"colour": {"size": [20, 20]}}, FoldError, r"classifiers.colour: .*`size` \[20, 20\], found input images"),
        ({"colour": {"onnx": "no.onnx"}}, SpecError, "classifiers.colour.onnx: expected a file"),
        ({"colour": {"onnx": "squares.yaml"}}, FoldError, "classifiers.colour: expected an ONNX file"),
        ({"colour": {"classes": ["tepid"]}}, SpecError, "classifiers.colour.classes: expected names out of"),
        (
            {"detector": {"labels": "warm.txt"}, "colour": {"classes": ["tepid"]}},
            SpecError,
            r"\(warm, cool\); got 'tepid'",
        ),
        ({"precision": "int8"}, SpecError, "calibration: missing; expected a folder of pictures"),
        ({"colour": {"precision": "int8"}}, SpecError, "calibration: missing; expected a folder of pictures"),
        ({"verification": {"images": "none"}}, SpecError, "verification.images: expected a folder; there is neither"),
        (
            {"precision": "fp16", "detector": {"keep_fp32": ["cnov*"]}},
            FoldError,
            "detector: expected keep_fp32 to name",
        ),
    ],
)
def test_a_build_that_fails_leaves_the_repository_as_it_was(
    tmp_path: Path, repository: Path, change: Any, error: type[BuildError], said: str
) -> None:
    build(cascade.write(tmp_path), repository=repository)
    write_files(tmp_path)
    before = tree(repository)

    with pytest.raises(error, match=said):
        build(cascade.write(tmp_path, **change), repository=repository)

    assert tree(repository) == before


@pytest.mark.parametrize("renames", [0, 1, 4, 8])
def test_a_disk_that_fails_midway_leaves_one_build_or_the_other(
    tmp_path: Path, repository: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rename publishes; what fails after it is done by the next one."""
    build(cascade.write(tmp_path, classifiers=SECOND), repository=repository)
    before = tree(repository)
    move, done = os.replace, []

    def failing(source: Any, target: Any) -> None:
        done.append(target)
        if len(done) == renames + 1:
            raise OSError("no space left on device")
        move(source, target)

    path = cascade.write(
        tmp_path, detector={"threshold": 0.5, "candidates": 300}, classifiers={"third": SECOND["shade"]}
    )
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(RepositoryError, match="no space left on device; " + ("nothing" if renames else "it is as")):
            build(path, repository=repository)

    if renames == 0:
        assert tree(repository) == before
        assert {folder.name for folder in repository.iterdir()} == {name.split("/")[0] for name in before}
    else:
        LocalPipeline(repository, "squares").close()
        assert not list(repository.glob(".tricade-*"))
        assert build(path, repository=repository).kept == ("squares_detector", "squares_colour", "squares_third")
        build(path, repository=tmp_path / "afresh")
        # The detector is the one network that has changed.
        was = {name: file for name, file in before.items() if name.startswith("squares_detector/1/")}
        fresh = {
            name.replace("squares_detector/1/", "squares_detector/2/"): file
            for name, file in tree(tmp_path / "afresh").items()
        }
        assert contents(tree(repository)) == contents(fresh | was)


def test_models_that_the_pipeline_no_longer_has_are_removed_and_others_stay(tmp_path: Path, repository: Path) -> None:
    build(cascade.write(tmp_path, classifiers=SECOND), repository=repository)
    build(cascade.write(tmp_path / "b", name="others"), repository=repository)
    (repository / "mine").mkdir()
    others = {name: file for name, file in tree(repository).items() if name.startswith("others")}

    done = build(cascade.write(tmp_path), repository=repository)

    assert done.removed == ("squares_shade",)
    assert not (repository / "squares_shade").exists()
    assert not (repository / "squares_label" / "labels" / "shade.txt").exists()
    assert (repository / "mine").is_dir()
    assert {name: file for name, file in tree(repository).items() if name.startswith("others")} == others


@pytest.mark.parametrize("owner", ["# Pipeline squares_b: written by hand\n", 'name: "squares_crop"\n', None])
def test_a_folder_of_somebody_else_is_not_written_to(tmp_path: Path, repository: Path, owner: str | None) -> None:
    folder = repository / "squares_crop"
    folder.mkdir(parents=True)
    if owner:
        (folder / "config.pbtxt").write_text(owner)

    with pytest.raises(RepositoryError, match="squares_crop to be pipeline squares's, it "):
        build(cascade.write(tmp_path), repository=repository)

    assert [path.name for path in repository.iterdir()] == ["squares_crop"]


def test_an_unknown_target(tmp_path: Path, repository: Path) -> None:
    with pytest.raises(BuildError, match="expected a target out of onnxruntime, tensorrt, tensorrt-rtx; got cuda"):
        build(cascade.write(tmp_path), repository=repository, target="cuda")


def test_the_family_is_found_by_what_the_network_answers(tmp_path: Path, repository: Path) -> None:
    done = build(cascade.write(tmp_path), repository=repository)
    before = tree(repository)

    assert done.built == ("squares_detector", "squares_colour")
    assert build(cascade.write(tmp_path, detector={"family": "auto"}), repository=repository).built == ()
    assert tree(repository) == before


def test_labels_out_of_the_networks_own_metadata(tmp_path: Path, repository: Path) -> None:
    path = cascade.write(tmp_path, detector={"labels": "metadata:names"}, colour={"classes": ["cool"]})
    onnx.save(named({0: "warm", 1: "cool"}), tmp_path / "squares.onnx")

    build(path, repository=repository)

    assert (repository / "squares_label" / "detector.txt").read_text() == "warm\ncool\n"


def test_a_network_whose_batch_is_one(tmp_path: Path, repository: Path) -> None:
    path = cascade.write(tmp_path, colour={"onnx": "static.onnx", "max_batch": 1})
    write_files(tmp_path)
    build(path, repository=repository)
    objects = cascade.objects(5, seed=5)

    pipeline = LocalPipeline(repository, "squares")
    try:
        found = pipeline({"IMAGE": np.array([cascade.picture(objects)], np.object_)})
    finally:
        pipeline.close()

    assert [names[0].decode() for names in found["COLOUR_LABELS"]] == list(cascade.expected(objects).colours)


def test_an_embedding_reaches_the_client(tmp_path: Path, repository: Path) -> None:
    """More crops than a batch: some take the edge, some are called for; and some get no vector."""
    section = cascade.colour_section(head="embedding", max_batch=4, classes=["warm"], normalize_embedding=True)
    del section["labels"]
    build(cascade.write(tmp_path, classifiers={"look": section}), repository=repository)
    objects = cascade.objects(30, seed=3)

    pipeline = LocalPipeline(repository, "squares")
    try:
        found = pipeline({"IMAGE": np.array([cascade.picture(objects)], np.object_)})
    finally:
        pipeline.close()

    expected = cascade.expected(objects)
    warm = np.array([label == "warm" for label in expected.labels])
    vectors = found["LOOK_EMBEDDING"]
    assert vectors.shape == (30, len(cascade.COLOURS))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), warm.astype(float), atol=1e-5)
    best = np.array(list(cascade.COLOURS))[vectors.argmax(1)]
    assert best[warm].tolist() == [colour for colour, is_warm in zip(expected.colours, warm, strict=True) if is_warm]
