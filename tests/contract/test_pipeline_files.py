"""`pipelines/`: the example parses with anybody's networks, and its README knows every key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import graphs
import numpy as np
import onnx
import pytest
import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from tricade_build.build import build
from tricade_build.families import AUTO, FAMILIES
from tricade_build.heads import HEADS
from tricade_build.spec import Pipeline

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
README = (PIPELINES / "README.md").read_text(encoding="utf-8")


def keys(section: type[BaseModel] = Pipeline, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every key, dotted, `*` for the name of a classifier; and its default, undefined where there is none."""
    for name, field in section.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        is_named = get_origin(field.annotation) is dict
        yield f"{path}{name}", field.default if inner is None else PydanticUndefined
        if inner:
            yield from keys(inner, f"{path}{name}{'.*' if is_named else ''}.")


def shared(key: str) -> str:
    """`normalize` is explained once for both kinds of networks."""
    return re.sub(r"^.*\.normalize\.", "*.normalize.", key)


def rows() -> dict[str, list[str]]:
    """The README's table of keys: type, default, meaning of each."""
    table = re.search(r"^## Keys$(.*?)^## ", README, re.DOTALL | re.MULTILINE)
    assert table
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines() if line[:1] == "|"]
    return {row[0].strip("`"): row[1:] for row in cells if row[0].startswith("`")}


def test_the_readme_has_every_key_and_no_other() -> None:
    assert sorted(rows()) == sorted({shared(key) for key, _ in keys()})


@pytest.mark.parametrize(
    ("key", "default"), [(key, default) for key, default in keys() if isinstance(default, (bool, int, float, str))]
)
def test_the_readmes_defaults(key: str, default: Any) -> None:
    text = str(default).lower() if isinstance(default, bool) else f"{default:g}" if default == 0 else str(default)

    assert rows()[shared(key)][1] == f"`{text}`"


def test_the_readme_has_every_family_and_head() -> None:
    families = re.search(r"^## Families$(.*?)^## ", README, re.DOTALL | re.MULTILINE)
    assert families
    assert sorted(re.findall(r"^\| `(\w+)` \|", families[1], re.MULTILINE)) == sorted(FAMILIES)
    assert sorted(re.findall(r"`(\w+)`", rows()["classifiers.*.head"][0])) == sorted(HEADS)
    assert AUTO in rows()["detector.family"][2]


def test_objects_builds_with_a_users_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = yaml.safe_load((PIPELINES / "objects.yaml").read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    labels = len(spec["detector"]["labels"])
    answers = {
        spec["detector"]["onnx"]: np.zeros((4 + labels, 8400), np.float32),
        **{c["onnx"]: np.zeros(len(c["labels"]), np.float32) for c in spec["classifiers"].values()},
    }
    for name, answer in answers.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        onnx.save(graphs.answering(answer), tmp_path / name)

    done = build(PIPELINES / "objects.yaml", repository=tmp_path / "repository")

    assert done.built == ("objects_detector", "objects_colour", "objects_clothes")


def test_the_readmes_tile_rule() -> None:
    """A picture of 2000 × 3000 in tiles of 640 that share a fifth: 4 rows, 6 columns, and the whole."""
    from math import ceil

    from tricade.tiles import tiles_of

    assert "⌈(H - h) / (h · (1 - overlap))⌉ + 1 rows" in README
    rows, columns = (ceil((side - 640) / (640 * 0.8)) + 1 for side in (2000, 3000))
    assert len(tiles_of(0, (2000, 3000), tile=(640, 640), overlap=0.2)) == rows * columns + 1 == 4 * 6 + 1
