"""The example in int8 on ONNX Runtime, held to fp32 on drawn pages; and a calibration that the gate must catch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import pages
import pytest
import yaml

from tricade.manifest import manifest_from
from tricade.versions import latest_folder
from tricade_build import quantize
from tricade_build.build import Built, build
from tricade_build.errors import VerificationError
from tricade_build.layers import Layer
from tricade_build.models import fetch

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ("text_detector", "text_orientation", "text_text")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Networks and pictures; what is made stays unpublished in here."""
    folder = tmp_path_factory.mktemp("int8")
    fetch("text", into=folder / "models")
    pages.write(folder / "right", count=8)
    pages.write(folder / "holdout", count=8, first=50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRICADE_CACHE", str(folder / "cache"))
        yield folder


def built(folder: Path, name: str, *, calibration: str, **keys: Any) -> Built:
    """With a smaller detector, for the time it takes."""
    spec = yaml.safe_load((ROOT / "pipelines" / "text.yaml").read_text(encoding="utf-8"))
    spec["detector"] |= {"size": [480, 480], **keys.pop("detector", {})}
    spec |= {"calibration": {"images": calibration, "method": "entropy"}, "verification": {"images": "holdout"}, **keys}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True), encoding="utf-8")
    return build(folder / f"{name}.yaml", repository=folder / name)


def test_int8_agrees_with_fp32_within_the_gate(folder: Path) -> None:
    done = built(folder, "whole", calibration="right", precision="int8")

    assert done.built == NETWORKS
    assert {name: found.passed for name, found in done.verified.items()} == {f"{m}/model.onnx": True for m in NETWORKS}
    for found in done.verified.values():
        assert found.agreement >= 0.99
        assert found.max_drop == 0.01
        assert max(error.max_error for error in found.errors.values()) > 0  # it is int8 that was compared
    record = manifest_from(latest_folder(folder / "whole" / "text_text"))["model.onnx"]
    assert (record["precision"], record["verification"]["found"]["samples"]) == (
        "int8",
        done.verified["text_text/model.onnx"].samples,
    )
    assert built(folder, "whole", calibration="right", precision="int8").kept == NETWORKS


def test_the_gate_catches_a_wrong_calibration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges a twentieth of what was measured: all that stands out is cut off."""
    right = quantize.paired

    def wrong(model: onnx.ModelProto, layers: Sequence[Layer], ranges: Mapping[str, float]) -> onnx.ModelProto:
        return right(model, layers, {name: largest / 20 for name, largest in ranges.items()})

    monkeypatch.setattr(quantize, "paired", wrong)
    monkeypatch.setenv("TRICADE_CACHE", str(folder / "another"))

    with pytest.raises(VerificationError, match="text_detector in int8: expected an agreement with fp32") as caught:
        built(folder, "wrong", calibration="right", detector={"precision": "int8"})

    assert "missed" in str(caught.value)
    assert not (folder / "wrong").exists()
