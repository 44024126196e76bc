"""The example's networks in fp16, as a GPU computes it, against fp32 on a photographed page."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import skimage
from numpy.typing import NDArray
from PIL import Image

from tricade_build.fold import Folded
from tricade_build.half import half_from, largest_of
from tricade_build.half_simulated import simulated
from tricade_build.heads import HEADS
from tricade_build.models import fetch
from tricade_build.networks import Job, job_of
from tricade_build.runtime import Runtime
from tricade_build.spec_file import pipeline_from_file

ROOT = Path(__file__).resolve().parents[2]
# Lines of the page in pixels: left, top, right, bottom.
LINES = ((2, 8, 298, 36), (2, 48, 382, 66), (2, 66, 382, 84), (2, 84, 382, 104), (2, 101, 382, 122), (2, 116, 176, 139))


@pytest.fixture(scope="module")
def page() -> Image.Image:
    return Image.open(Path(skimage.data_dir, "page.png")).convert("RGB")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    fetch("text", into=folder / "models")
    return folder


def opened(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Job, Folded]:
    monkeypatch.chdir(folder)
    job = job_of(pipeline_from_file(ROOT / "pipelines" / "text.yaml"), name)
    return job, job.fold()


def fitted(picture: Image.Image, height: int, width: int) -> NDArray[np.uint8]:
    """[1, h, w, 3]: as large as it fits, grey to the right and below."""
    scale = min(height / picture.height, width / picture.width)
    made = np.full((1, height, width, 3), 114, np.uint8)
    size = (round(picture.width * scale), round(picture.height * scale))
    made[0, : size[1], : size[0]] = np.asarray(picture.resize(size, Image.Resampling.BILINEAR))
    return made


def test_the_detectors_map(page: Image.Image, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, plain = opened("detector", folder, monkeypatch)
    inputs = {"TENSOR": fitted(page, *job.front.size)}
    largest = largest_of(plain.model, [inputs])

    half = half_from(plain, largest=largest)

    expected = Runtime(plain.model).run(inputs)["MAP"].astype(int)
    found = Runtime(simulated(half.model)).run(inputs)["MAP"].astype(int)
    apart = np.abs(found - expected)
    assert (expected > 76).mean() > 0.05  # it sees text
    assert apart.max() <= 10  # of 255
    assert apart.mean() < 0.1
    assert ((found > 76) != (expected > 76)).mean() < 3e-4
    assert max(largest.values()) < 1000  # so nothing had to stay in fp32 for its size


def test_the_orientations_scores(page: Image.Image, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, plain = opened("orientation", folder, monkeypatch)
    lines = [page.crop(line) for line in LINES]
    crops = [fitted(each, *job.front.size) for line in lines for each in (line, line.rotate(180))]
    inputs = {"CROPS": np.concatenate(crops)}

    half = half_from(plain, largest=largest_of(plain.model, [inputs]))

    expected, found = Runtime(plain.model).run(inputs), Runtime(simulated(half.model)).run(inputs)
    np.testing.assert_array_equal(found["INDEX"], expected["INDEX"])
    np.testing.assert_allclose(found["SCORE"], expected["SCORE"], atol=0.01)


def test_the_text_that_is_read(page: Image.Image, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, plain = opened("text", folder, monkeypatch)
    crops = [{"CROPS": fitted(page.crop(line), job.front.size[0], 960)} for line in LINES]

    half = half_from(plain, largest=largest_of(plain.model, crops), widths=job.front.widths)

    fp32, fp16 = Runtime(plain.model), Runtime(simulated(half.model))
    for place, inputs in enumerate(crops):
        expected, found = fp32.run(inputs), fp16.run(inputs)
        np.testing.assert_array_equal(found["INDEX"], expected["INDEX"])
        apart = np.abs(found["SCORE"] - expected["SCORE"])
        assert apart.max() < 0.1  # of a letter that fp32 is unsure of too
        assert apart.mean() < 2e-3
        if place == 0:
            alphabet = HEADS["ctc"].names(job.labels, plain.shapes.classes)
            letters = [alphabet[index] for index, _ in groupby(expected["INDEX"][0])]
            assert "".join(letters).replace(" ", "") == "Region-basedsegmentation"
