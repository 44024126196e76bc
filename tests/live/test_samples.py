"""`tricade serve --samples`: pictures that users sent, kept as they came by the real service."""

from __future__ import annotations

import hashlib
from pathlib import Path

import cascade
import processes
import pytest
import running

from tricade_client import ServerRefused

FORMS = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP", "bmp": "BMP", "tiff": "TIFF"}
PICTURES = {suffix: cascade.picture(cascade.objects(3, seed=n), form=f) for n, (suffix, f) in enumerate(FORMS.items())}


def names(pictures: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{hashlib.sha256(data).hexdigest()[:16]}.{suffix}": data for suffix, data in pictures.items()}


def kept(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_pictures_are_kept_as_they_came_and_none_of_the_server_s_own(squares_repository, tmp_path):
    options = ("--samples", str(tmp_path / "samples"), "--sample-every", "1")
    with running.served(squares_repository, *options) as server, server.client("squares") as client:
        assert kept(tmp_path / "samples") == {}
        for _ in range(2):
            client.detect(list(PICTURES.values()))
        with pytest.raises(ServerRefused):
            client.detect([b"no picture"])
        assert kept(tmp_path / "samples") == names(PICTURES)


def test_one_of_three_and_not_more_than_there_may_be(squares_repository, tmp_path):
    options = ("--samples", str(tmp_path), "--sample-every", "3", "--samples-max", "4")
    with running.served(squares_repository, *options) as server, server.client("squares") as client:
        sent = [cascade.picture(cascade.objects(1, seed=seed)) for seed in range(40)]
        for picture in sent[:9]:
            client.detect(picture)
        assert 2 <= len(kept(tmp_path)) <= 3  # each of two instances counts on its own
        for picture in sent[9:]:
            client.detect(picture)
        assert len(kept(tmp_path)) == 4
        assert set(kept(tmp_path).values()) <= set(sent)


def test_what_cannot_be_written_is_said_once_and_no_request_fails(squares_repository, tmp_path):
    folder = tmp_path / "samples"
    options = ("--samples", str(folder), "--sample-every", "1")
    with running.served(squares_repository, *options) as server, server.client("squares") as client:
        folder.rmdir()
        for _ in range(12):
            assert len(client.detect(PICTURES["png"])) == 3
        said = f"tricade: no more pictures are kept in {folder}: No such file or directory\n"
        processes.wait_for(lambda: said in server.lines)
        instances = len(server.stubs("squares_preprocess"))
    assert server.lines.count(said) <= instances
    assert not folder.exists()


def test_it_is_off_unless_it_is_asked_for(squares_repository, tmp_path, monkeypatch):
    monkeypatch.setenv("TRICADE_SAMPLES", str(tmp_path))
    monkeypatch.setenv("TRICADE_SAMPLE_EVERY", "1")
    with running.served(squares_repository) as server, server.client("squares") as client:
        client.detect(list(PICTURES.values()))
    assert kept(tmp_path) == {}


def test_a_folder_that_cannot_be_made_is_named_before_anything_starts(squares_repository, tmp_path):
    (tmp_path / "file").touch()
    server = running.started(squares_repository, "--samples", str(tmp_path / "file" / "samples"))
    assert server.process.wait(60) == 1
    processes.wait_for(lambda: server.lines)
    assert "expected a folder for samples that can be made and written" in server.lines[-1]
    assert "Not a directory; choose another: --samples" in server.lines[-1]
