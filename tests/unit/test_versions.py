"""`tricade.versions`: which folders of a model hold a version of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tricade.versions import latest, latest_folder, versions


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], ()),
        (["1"], (1,)),
        (["10", "9", "2"], (2, 9, 10)),
        (["0", "01", "1a", "-1", "one", "²", ".2"], ()),  # Triton looks into none of these, or not as it reads them
    ],
)
def test_which_folders_are_versions(tmp_path: Path, names: list[str], found: tuple[int, ...]) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "77").touch()

    assert versions(tmp_path) == found
    assert latest(tmp_path) == max(found, default=0)
    assert latest_folder(tmp_path) == tmp_path / str(max(found, default=0))


def test_a_model_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert versions(tmp_path / "model") == ()
