"""`tricade_build.build`: all of a pipeline's models, or none of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import cascade
import numpy as np
import onnx
import pytest

from tricade_build.build import build
from tricade_build.errors import BuildError, FoldError, RepositoryError, SpecError
from tricade_build.local import LocalPipeline

SECOND = {"shade": cascade.colour_section(top_k=3, max_batch=4)}


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's contents and time of writing."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


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
        ({"colour": {"size": [20, 20]}}, FoldError, r"classifiers.colour: .*`size` \[20, 20\], found input images"),
        ({"colour": {"onnx": "no.onnx"}}, SpecError, "classifiers.colour.onnx: expected a file"),
        ({"colour": {"onnx": "squares.yaml"}}, FoldError, "classifiers.colour: expected an ONNX file"),
        ({"colour": {"classes": ["tepid"]}}, SpecError, "classifiers.colour.classes: expected names out of"),
        (
            {"detector": {"labels": "warm.txt"}, "colour": {"classes": ["tepid"]}},
            SpecError,
            r"\(warm, cool\); got 'tepid'",
        ),
        ({"precision": "fp16"}, BuildError, "precision: expected fp32, the only one for target onnxruntime; got fp16"),
        ({"colour": {"precision": "int8"}}, BuildError, "classifiers.colour.precision: expected fp32"),
    ],
)
def test_a_build_that_fails_leaves_the_repository_as_it_was(
    tmp_path: Path, repository: Path, change: Any, error: type[BuildError], said: str
) -> None:
    build(cascade.write(tmp_path), repository=repository)
    (tmp_path / "warm.txt").write_text("warm\r\ncool\n")
    before = tree(repository)

    with pytest.raises(error, match=said):
        build(cascade.write(tmp_path, **change), repository=repository)

    assert tree(repository) == before


@pytest.mark.parametrize("renames", range(0, 24, 3))
def test_a_disk_that_fails_midway_leaves_the_repository_as_it_was(
    tmp_path: Path, repository: Path, renames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(cascade.write(tmp_path, classifiers=SECOND), repository=repository)
    before = tree(repository)
    replace, done = os.replace, []

    def failing(source: Any, target: Any) -> None:
        done.append(target)
        if len(done) == renames + 1:
            raise OSError("no space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    path = cascade.write(
        tmp_path, detector={"threshold": 0.5, "candidates": 300}, classifiers={"third": SECOND["shade"]}
    )
    with pytest.raises(RepositoryError, match="no space left on device"):
        build(path, repository=repository)

    assert tree(repository) == before
    assert {folder.name for folder in repository.iterdir()} == {name.split("/")[0] for name in before}


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
    with pytest.raises(BuildError, match="expected a target out of onnxruntime; got cuda"):
        build(cascade.write(tmp_path), repository=repository, target="cuda")
