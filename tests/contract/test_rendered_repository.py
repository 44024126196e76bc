"""The committed `model_repository` is what `pipelines/text.yaml` renders to, and every stage takes its settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tricade.crop import Crop
from tricade.label import Label
from tricade.preprocess import Preprocess
from tricade.stage import spec_from_config
from tricade.turn import Turn
from tricade.versions import is_version
from tricade_build.build import build
from tricade_build.models import fetch

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "model_repository"
STAGES = {"preprocess": Preprocess, "crop": Crop, "turn": Turn, "label": Label}


def configuration(repository: Path) -> dict[str, bytes]:
    """The files of the pipeline `text` that are committed: everything but versions of networks."""
    return {
        path.relative_to(repository).as_posix(): path.read_bytes()
        for path in sorted(repository.glob("text*/**/*"))
        if path.is_file() and (path.name == ".gitkeep" or not is_version(path.parent.name))
    }


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository, built anew; the networks are found below the working directory."""
    folder = tmp_path_factory.mktemp("work")
    fetch("text", into=folder / "models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        build(ROOT / "pipelines" / "text.yaml", repository=folder / "repository")
    return folder / "repository"


def test_the_committed_repository_is_what_renders(rendered: Path) -> None:
    fresh, committed = configuration(rendered), configuration(COMMITTED)

    assert list(committed) == list(fresh)
    for name, data in fresh.items():
        assert committed[name] == data, f"{name} is stale; run: tricade build pipelines/text.yaml"


def test_every_stage_takes_its_settings(rendered: Path) -> None:
    loaded = set()
    for file in rendered.glob("*/config.pbtxt"):
        config = text_format.Parse(file.read_text(encoding="utf-8"), ModelConfig())
        if config.backend in STAGES:
            data = json_format.MessageToDict(config, preserving_proto_field_name=True)
            STAGES[config.backend].load(spec_from_config(data, directory=file.parent, version=1)).close()
            loaded.add(config.backend)
    assert loaded == set(STAGES)


def test_the_alphabet_has_a_name_for_every_class_of_the_recognizer(rendered: Path) -> None:
    names = (rendered / "text_label" / "text.txt").read_text(encoding="utf-8").split("\n")

    # PP-OCRv6: a blank, 18708 characters, a space; nothing behind the last line.
    assert len(names) == 18710 + 1
    assert (names[0], names[1], names[-3], names[-2], names[-1]) == ("", "!", "🛅", " ", "")
