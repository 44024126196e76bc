"""A build holds what it made to fp32 before it publishes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cascade
import numpy as np
import pytest
from onnx import numpy_helper

from tricade.manifest import manifest_from
from tricade.versions import latest_folder, versions
from tricade_build import precision
from tricade_build.build import Built, build
from tricade_build.errors import VerificationError

NETWORKS = ("squares_detector", "squares_colour")
GRAPHS = tuple(f"{model}/model.onnx" for model in NETWORKS)
COUNTS = (0, 3, 6, 9, 12, 15, 18, 21, 24, 90)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRICADE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def pictures(tmp_path: Path) -> str:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for seed, count in enumerate(COUNTS):
        (folder / f"{seed}.png").write_bytes(cascade.picture(cascade.objects(count, seed=seed)))
    return folder.name


def built(tmp_path: Path, **keys: Any) -> Built:
    return build(cascade.write(tmp_path, **{"precision": "fp16", **keys}), repository=tmp_path / "repository")


def record(tmp_path: Path, model: str) -> dict[str, Any]:
    entry: dict[str, Any] = manifest_from(latest_folder(tmp_path / "repository" / model))["model.onnx"]
    return entry


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Conversions to fp16 that spoil the classifier, noted down: red is taken for the last colour."""
    seen: list[str] = []
    right = precision.PRECISIONS["fp16"]

    def wrong(job: Any, folded: Any, evidence: Any, report: Any) -> Any:
        seen.append(job.name)
        made = right.convert(job, folded, evidence, report)
        if job.name == "colour":
            for constant in made.model.graph.initializer:
                if constant.name.endswith("bias"):
                    value = numpy_helper.to_array(constant).copy()
                    value[0], value[-1] = value[0] - 100, value[-1] + 30
                    constant.CopyFrom(numpy_helper.from_array(value, constant.name))
        return made

    monkeypatch.setitem(precision.PRECISIONS, "fp16", replace(right, convert=wrong))
    return seen


def test_fp16_is_held_to_fp32_once(tmp_path: Path, pictures: str) -> None:
    done = built(tmp_path, verification={"images": pictures})

    assert (done.built, tuple(done.verified), done.unverified) == (NETWORKS, GRAPHS, {})
    for model, samples, unit in zip(NETWORKS, (len(COUNTS), sum(COUNTS)), ("pictures", "crops"), strict=True):
        found = done.verified[f"{model}/model.onnx"]
        assert (found.agreement, found.samples, found.unit, found.passed) == (1.0, samples, unit, True)
        entry = record(tmp_path, model)
        assert entry["precision"] == "fp16"
        assert entry["verification"]["found"]["agreement"] == 1.0
        page = (tmp_path / "repository" / model / "1" / "model.onnx.html").read_text()
        assert f"{model}: model.onnx" in page
    errors = done.verified[GRAPHS[1]].errors
    assert 0 < errors["network/logits"].max_error < 0.1  # of 100; fp16 has steps of 0.06 there
    again = built(tmp_path, verification={"images": pictures})
    assert (again.kept, tuple(again.verified)) == (NETWORKS, GRAPHS)
    assert versions(tmp_path / "repository" / NETWORKS[0]) == (1,)


def test_another_limit_is_another_verification_of_the_same_graph(tmp_path: Path, pictures: str) -> None:
    built(tmp_path, verification={"images": pictures})

    done = built(tmp_path, verification={"images": pictures, "max_drop": 0.5})

    assert done.built == NETWORKS
    first, second = (tmp_path / "repository" / NETWORKS[0] / version / "model.onnx" for version in "12")
    assert first.samefile(second)
    assert record(tmp_path, NETWORKS[0])["verification"]["found"]["max_drop"] == 0.5


def test_what_is_worse_is_not_published(tmp_path: Path, pictures: str, conversions: list[str], cache: Path) -> None:
    with pytest.raises(VerificationError) as caught:
        built(tmp_path, verification={"images": pictures})

    said = str(caught.value)
    assert "squares_colour in fp16: expected an agreement with fp32" in said
    assert "fp32: red" in said
    assert "squares_detector" not in said
    assert "keep_fp32" in said
    assert not (tmp_path / "repository").exists()
    page = cache / "reports" / "squares_colour-model.onnx.html"
    assert str(page) in said
    assert "Failed" in page.read_text()
    assert conversions == ["detector", "colour"]


def test_what_was_made_is_found_again_once_more_is_allowed(
    tmp_path: Path, pictures: str, conversions: list[str], cache: Path
) -> None:
    with pytest.raises(VerificationError):
        built(tmp_path, verification={"images": pictures})
    assert list((cache / "unpublished").iterdir())

    done = built(tmp_path, verification={"images": pictures, "max_drop": 1.0})

    assert done.built == NETWORKS
    assert done.verified[GRAPHS[1]].agreement < 0.99
    assert conversions == ["detector", "colour"]
    assert not list((cache / "unpublished").iterdir())


def test_without_pictures_it_says_so(tmp_path: Path) -> None:
    done = built(tmp_path)

    assert done.built == NETWORKS
    assert dict(done.verified) == {}
    assert tuple(done.unverified) == GRAPHS
    assert "verification.images" in done.unverified[GRAPHS[0]]
    assert record(tmp_path, NETWORKS[0])["verification"] is None


def test_pictures_without_anything_to_classify_prove_nothing(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    random = np.random.default_rng(0)
    for number in range(8):
        grey = np.full((64, 64, 3), 20 + 25 * number, np.uint8) + random.integers(0, 9, (64, 64, 1), np.uint8)
        from PIL import Image

        Image.fromarray(grey).save(tmp_path / "bare" / f"{number}.png")

    with pytest.raises(VerificationError, match="squares_colour in fp16: expected crops to compare with fp32 on"):
        built(tmp_path, verification={"images": "bare"})


def test_an_interrupted_build_ends_at_once_and_changes_nothing(tmp_path: Path, pictures: str) -> None:
    threads = threading.active_count()

    def report(what: str, share: float | None = None, /) -> None:
        if what == "building squares_colour":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(
            cascade.write(tmp_path, precision="fp16", verification={"images": pictures}),
            repository=tmp_path / "repository",
            report=report,
        )

    assert threading.active_count() == threads
    assert not (tmp_path / "repository").exists()
