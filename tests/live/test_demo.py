"""`tools/demo.py` as a process: what it prints and writes, and that nothing of it is left."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import processes
import pytest
import running
import skimage
from PIL import Image

from tricade_tune.host import free_ports

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(skimage.data_dir, "page.png")
TIMEOUT_S = 180


@dataclass(frozen=True)
class Ended:
    """A demo that has ended, and the processes that were below it while Triton ran."""

    code: int
    out: str
    errors: str
    below: tuple[int, ...]

    @property
    def words(self) -> str:
        """The last column of the table, its lines put together."""
        return " ".join(" ".join(re.findall(r"│ ([^│]*?) +│[^│]*│$", self.out, re.MULTILINE)).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where demos run: the pipeline file, and what earlier ones have built."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "text.yaml").write_text((ROOT / "pipelines" / "text.yaml").read_text())
    (folder / "tmp").mkdir()
    return folder


@pytest.fixture(scope="module")
def first(folder) -> tuple[Ended, int]:
    """The first run there, on a picture of its own, and the port it was told to take."""
    (port,) = free_ports(1)
    return run(folder, GRPC_PORT=str(port)), port


def run(folder: Path, *arguments: str, interrupt: signal.Signals | None = None, **environment: str) -> Ended:
    """Start it, wait for Triton's stages, send the signal if there is one, and check that nothing is left."""
    temporary = folder / "tmp"
    demo = subprocess.Popen(
        [sys.executable, str(ROOT / "tools" / "demo.py"), *arguments],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(temporary), "GRPC_PORT": ""} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        processes.wait_for(lambda: stubs(demo.pid) or demo.poll() is not None, timeout_s=TIMEOUT_S)
        below = tuple(processes.descendants(demo.pid))
        if interrupt:
            os.killpg(demo.pid, interrupt)  # as a terminal does
        out, errors = demo.communicate(timeout=TIMEOUT_S)
    finally:
        demo.kill()
    assert [pid for pid in below if processes.alive(pid)] == []
    mine = (demo.pid, *below)
    assert [left for pid in mine for left in running.left_by(pid)] == []
    assert list(temporary.iterdir()) == []
    return Ended(demo.returncode, out, errors, below)


def stubs(pid: int) -> list[int]:
    return [each for each in processes.descendants(pid) if "triton_python_backend_stub" in processes.command(each)]


def test_it_shows_a_picture_of_its_own(folder, first):
    demo, port = first
    assert demo.code == 0, demo.errors
    assert demo.below
    assert "built: text_detector, text_orientation, text_text" in demo.out
    for line in ("Corner Bakery", "this line stands on its head", "FRESH TODAY", "quarter turned", "6.00"):
        assert line in demo.words
    assert re.search(r"180 +│ +[\d.]+ │ this line stands on its head", demo.out)
    assert f"grpc 127.0.0.1:{port}" in demo.out
    assert re.search(r"^one gRPC call \(\d+\.\d s\)$", demo.out, re.MULTILINE)
    assert "the annotated picture is out/demo-bakery.png" in demo.out
    with Image.open(folder / "out" / "bakery.png") as plain, Image.open(folder / "out" / "demo-bakery.png") as copy:
        assert copy.size == plain.size
        assert copy.convert("RGB").tobytes() != plain.convert("RGB").tobytes()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_it_shows_the_picture_it_is_given_and_builds_nothing_twice(folder, first):
    demo = run(folder, str(PAGE))
    assert demo.code == 0, demo.errors
    assert "built: nothing, no network has changed" in demo.out
    assert "Region-based segmentation" in demo.words
    with Image.open(PAGE) as plain, Image.open(folder / "out" / "demo-page.png") as copy:
        assert copy.size == plain.size


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_trace(folder, number):
    demo = run(folder, interrupt=number)
    assert demo.code == 1
    assert demo.below
    assert demo.errors.splitlines()[-1] == "tricade: stopped before the end"


@pytest.fixture
def pictures(tmp_path) -> dict[str, str]:
    """Paths of what is no picture."""
    (tmp_path / "note.txt").write_text("no picture")
    (tmp_path / "half.png").write_bytes(PAGE.read_bytes()[:5000])
    Image.new("L", (8, 8)).save(tmp_path / "moving.gif")
    return {name: str(tmp_path / name) for name in ("nowhere.jpg", "note.txt", "half.png", "moving.gif", "")}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.jpg", "IMAGE: expected a picture, {} cannot be read: No such file or directory"),
        ("", "IMAGE: expected a picture, {} cannot be read: Is a directory"),
        ("note.txt", "IMAGE: expected JPEG, PNG, WEBP, BMP, TIFF; {} is none of them"),
        ("moving.gif", "IMAGE: expected JPEG, PNG, WEBP, BMP, TIFF; {} is none of them"),
        ("half.png", "IMAGE: {} cannot be decoded: image file is truncated"),
    ],
)
def test_what_is_no_picture_is_named_before_anything_starts(folder, pictures, name, message):
    demo = run(folder, pictures[name])
    assert (demo.code, demo.out, demo.below) == (1, "", ())
    assert demo.errors.startswith(f"tricade: {message.format(pictures[name])}")
    assert demo.errors.count("\n") == 1


def test_a_taken_port_is_named(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo = run(folder, GRPC_PORT=str(port))
    assert demo.code == 1
    assert demo.errors == (
        f"tricade: GRPC_PORT: expected a free port, {port} on 127.0.0.1 is not: Address already in use\n"
    )


@pytest.mark.parametrize("port", ["http", "65536", "-1"])
def test_what_is_no_port_is_named(folder, port):
    demo = run(folder, GRPC_PORT=port)
    assert (demo.code, demo.errors) == (1, f"tricade: GRPC_PORT: expected a port, 1 to 65535, got {port!r}\n")


def test_without_a_pipeline_file_it_says_which_it_expects(tmp_path):
    (tmp_path / "tmp").mkdir()
    demo = run(tmp_path)
    assert demo.code == 1
    assert "pipelines/text.yaml" in demo.errors
    assert demo.errors.count("\n") == 1
