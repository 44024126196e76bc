"""`tricade detect` over a fake transport: output, copies, exit codes."""

from __future__ import annotations

import json

import pytest
import typer
from fake_transport import FakeTransport
from PIL import Image
from typer.testing import CliRunner

from tricade_cli import detect
from tricade_client import Client, NotFound

APP = typer.Typer()
APP.callback()(lambda: None)
detect.register(APP)


class PictureTransport(FakeTransport):
    """Pictures are 40 x 30 and hold two detections, black ones none."""

    def _answered(self, request):
        image = request.inputs[0].data[0]
        if image.startswith((b"\xff\xd8", b"\x89PNG")):
            request.inputs[0].data[0] = b"2" if len(image) > 700 else b"0"
        return super()._answered(request)


@pytest.fixture
def ran(monkeypatch):
    monkeypatch.setattr(Client, "_opened", staticmethod(lambda _url, _tls: PictureTransport()))
    return lambda *arguments: CliRunner().invoke(APP, ["detect", *map(str, arguments)])


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "x.jpg"
    Image.effect_noise((40, 30), 90).convert("RGB").save(path)
    return path


@pytest.fixture
def black(tmp_path):
    path = tmp_path / "black.jpg"
    Image.new("RGB", (40, 30)).save(path, quality=10)
    return path


def test_tables(ran, picture, black):
    done = ran(picture, black)
    assert done.exit_code == 0
    assert "wörd 1" in done.stdout
    assert f"{black}: nothing found" in done.stdout
    assert done.stdout.index("wörd 0") < done.stdout.index("nothing found")


def test_json(ran, picture, black):
    done = ran(picture, black, "--json")
    said = json.loads(done.stdout)
    assert (done.exit_code, said["pipeline"]) == (0, "text")
    first, second = said["images"]
    assert (first["image"], first["size"], len(first["detections"])) == (str(picture), [30, 40], 2)
    assert second == {"image": str(black), "size": [30, 40], "truncated": 0, "detections": []}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_each_failure_is_told_and_the_others_go_on(ran, picture, tmp_path, more):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"bad")
    done = ran(tmp_path / "none.jpg", picture, bad, *more)
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        f"tricade: {tmp_path / 'none.jpg'}: cannot be read: No such file or directory",
        f"tricade: {bad}: cannot be decoded",
    ]
    assert "w\\u00f6rd" in done.stdout if more else "wörd" in done.stdout


def test_copies(ran, picture, black, tmp_path):
    (tmp_path / "other").mkdir()
    other = picture.rename(tmp_path / "other" / "black.jpg")
    png = tmp_path / "x.PNG"
    Image.effect_noise((40, 30), 90).convert("RGB").save(png)
    before = other.read_bytes()
    folder = tmp_path / "new" / "folder"
    done = ran(black, other, png, "--save", folder)
    assert done.exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["black.found-2.jpg", "black.found.jpg", "x.found.png"]
    with Image.open(folder / "black.found-2.jpg") as drawn:
        assert drawn.size == (40, 30)
    assert other.read_bytes() == before
    assert f"{png}: drawn into {folder / 'x.found.png'}" in done.stdout


def test_a_copy_that_cannot_be_written(ran, picture, tmp_path):
    (tmp_path / "file").touch()
    done = ran(picture, "--save", tmp_path / "file" / "below")
    assert done.exit_code == 1
    assert "cannot be written: " in done.stderr
    assert "wörd" in done.stdout


def test_what_befalls_every_picture_is_told_once(ran, picture):
    done = ran(picture, picture, "--pipeline", "nope")
    assert isinstance(done.exception, NotFound)
    assert "it has text" in str(done.exception)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["x.jpg", "--threshold", "2"],
        ["x.jpg", "--timeout-s", "0"],
        ["x.jpg", "--url", "http://here"],
        ["x.jpg", "--save", __file__],
        ["x.jpg", "--what"],
    ],
)
def test_bad_usage(ran, wrong):
    assert ran(*wrong).exit_code == 2
