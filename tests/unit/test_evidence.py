"""The pictures of a build, and what the networks are given while the pipeline runs over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cascade
import numpy as np
import pytest

from tricade_build import baseline
from tricade_build.build import build
from tricade_build.errors import SampleError
from tricade_build.evidence import Evidence
from tricade_build.networks import job_of
from tricade_build.settle import settled
from tricade_build.spec_file import pipeline_from_file
from tricade_build.weights import unheard

COUNTS = (0, 1, 9, 12, 2, 3, 4, 90)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    for seed, count in enumerate(COUNTS):
        data = cascade.picture(cascade.objects(count, seed=seed), scale=1 + seed % 2)
        (tmp_path / "pictures" / f"{seed}.png").write_bytes(data)
    return tmp_path


@pytest.fixture
def opened() -> Iterator[Any]:
    """Evidence for a cascade, closed in the end."""
    made: list[Evidence] = []

    def evidence(folder: Path, **keys: Any) -> Evidence:
        path = cascade.write(folder, **{"calibration": {"images": "pictures"}, **keys})
        pipeline = settled(path, pipeline_from_file(path))
        jobs = {name: job_of(pipeline, name) for name in ("detector", *pipeline.classifiers)}

        def fp32() -> Path:
            build(path, repository=folder / "fp32", precision="fp32")
            return folder / "fp32"

        made.append(Evidence(pipeline, jobs, fp32, unheard))
        return made[-1]

    yield evidence
    for each in made:
        each.close()


def test_the_detector_sees_the_pictures_and_the_classifier_their_crops(folder: Path, opened: Any) -> None:
    evidence = opened(folder)

    tensors = evidence.samples("detector", evidence.calibration)
    crops = evidence.samples("colour", evidence.calibration, enough=True)

    assert [sample.picture for sample in tensors] == [f"{seed}.png" for seed in range(len(COUNTS))]
    for seed, sample in enumerate(tensors):
        expected = cascade.pixels(cascade.objects(COUNTS[seed], seed=seed))
        np.testing.assert_array_equal(sample.inputs["TENSOR"][0], expected)
    seen = {f"{seed}.png": 0 for seed in range(len(COUNTS))}
    for sample in crops:  # of at most 8: `max_batch`
        assert sample.inputs["CROPS"].shape[0] <= 8
        seen[sample.picture] += len(sample.inputs["CROPS"])
    assert list(seen.values()) == list(COUNTS)
    colours = {tuple(crop[8, 8]) for sample in crops for crop in sample.inputs["CROPS"]}
    assert colours <= set(cascade.COLOURS.values())


def test_only_so_many_crops_are_kept_of_each_call(folder: Path, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "MAX_CROPS", 3 * len(COUNTS))
    evidence = opened(folder)

    crops = evidence.samples("colour", evidence.calibration)

    assert {len(sample.inputs["CROPS"]) for sample in crops} == {1, 2, 3}


def test_large_inputs_are_kept_in_files(folder: Path, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "ON_DISK_BYTES", 1)
    evidence = opened(folder)

    (first, *_) = evidence.samples("detector", evidence.calibration)

    assert isinstance(first.inputs["TENSOR"], np.memmap)
    np.testing.assert_array_equal(first.inputs["TENSOR"][0], cascade.pixels())


def test_too_few_crops_do_not_calibrate(folder: Path, opened: Any) -> None:
    evidence = opened(folder, detector={"threshold": 0.9497})  # what lies in the first cell only

    with pytest.raises(SampleError, match=r"classifiers.colour: expected at least 16 crops; the detector finds \d+ "):
        evidence.samples("colour", evidence.calibration, enough=True)


def test_verification_has_its_own_pictures_else_those_of_calibration(folder: Path, opened: Any) -> None:
    assert opened(folder).verification.where == "calibration.images"
    assert opened(folder, verification={"images": "pictures"}).verification.where == "verification.images"
    assert opened(folder, calibration=None).verification is None
    with pytest.raises(SampleError, match="calibration: expected a folder of pictures"):
        _ = opened(folder, calibration=None).calibration


@pytest.mark.parametrize(
    ("keys", "changed"),
    [
        ({}, ()),
        ({"colour": {"top_k": 2}}, ("colour",)),
        ({"colour": {"padding": 0.2}}, ("colour",)),
        ({"detector": {"threshold": 0.5}}, ("detector", "colour")),
        ({"detector": {"pad": 7}}, ("detector", "colour")),
        ({"precision": "fp16", "detector": {"keep_fp32": ["*"]}}, ()),
        ({"batching": {"max_delay_us": 1}, "colour": {"instances": 3}, "detector": {"max_delay_us": 5}}, ()),
    ],
)
def test_the_key_of_samples_changes_with_what_they_depend_on(
    folder: Path, opened: Any, keys: dict[str, Any], changed: tuple[str, ...]
) -> None:
    before, now = opened(folder), opened(folder, **keys)

    differ = tuple(
        name
        for name in ("detector", "colour")
        if before.key(name, before.calibration) != now.key(name, now.calibration)
    )
    assert differ == changed


def test_other_pictures_are_another_key(folder: Path, opened: Any) -> None:
    before = opened(folder)
    key = before.key("colour", before.calibration)
    (folder / "pictures" / "0.png").write_bytes(cascade.picture(cascade.objects(5, seed=99)))
    now = opened(folder)

    assert now.key("colour", now.calibration) != key
