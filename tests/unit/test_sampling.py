"""Pictures kept for calibration and verification: which, under what name, how many, and what an error does."""

from __future__ import annotations

import hashlib
import logging
import threading
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tricade import sampling
from tricade.errors import BadSettings
from tricade.sampling import Sampler, Sampling, keep, sampling_from_environment
from tricade_server.errors import BadSamples
from tricade_server.samples import Samples


def encoded(grey: int = 0, form: str = "PNG", **options) -> bytes:
    file = BytesIO()
    Image.new("L", (2, 2), grey).save(file, form, **options)
    return file.getvalue()


def kept(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


FORMS = [("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp"), ("BMP", "bmp"), ("TIFF", "tiff")]


@pytest.mark.parametrize(("form", "suffix"), FORMS)
def test_the_very_bytes_under_their_digest_and_the_suffix_of_their_format(tmp_path, form, suffix):
    data = encoded(form=form)
    assert keep(data, tmp_path, most=2)
    assert kept(tmp_path) == {f"{hashlib.sha256(data).hexdigest()[:16]}.{suffix}": data}


def test_several_pictures_in_one_jpeg_are_a_jpeg(tmp_path):
    further = Image.new("RGB", (2, 2))
    data = encoded(form="MPO", save_all=True, append_images=[further])
    with Image.open(BytesIO(data), formats=["JPEG"]) as image:
        assert image.format == "MPO"
    keep(data, tmp_path, most=2)
    assert [path.suffix for path in tmp_path.iterdir()] == [".jpg"]


def test_nothing_twice_and_no_more_than_the_most(tmp_path):
    (tmp_path / "of before.jpg").touch()
    (tmp_path / ".hidden").touch()
    results = [keep(encoded(grey), tmp_path, most=3) for grey in (0, 0, 1, 1, 2)]
    assert results == [True, True, False, False, False]
    assert {hashlib.sha256(encoded(grey)).hexdigest()[:16] + ".png" for grey in (0, 1)} | {
        "of before.jpg", ".hidden",
    } == kept(tmp_path).keys()  # fmt: skip


@pytest.mark.parametrize(("every", "expected"), [(1, [0, 1, 2, 3, 4, 5, 6]), (3, [2, 5]), (8, [])])
def test_every_nth(tmp_path, every, expected):
    sampler = Sampler(Sampling(tmp_path, every=every))
    for grey in range(7):
        sampler.offer(encoded(grey))
    assert set(kept(tmp_path).values()) == {encoded(grey) for grey in expected}


def test_it_begins_once_the_folder_is_there(tmp_path):
    folder = tmp_path / "samples"
    sampler = Sampler(Sampling(folder, every=1))
    sampler.offer(encoded(1))
    folder.mkdir()
    sampler.offer(encoded(2))
    assert list(kept(folder).values()) == [encoded(2)]


def test_instances_together_keep_to_the_most(tmp_path):
    samplers = [Sampler(Sampling(tmp_path, every=1, most=20)) for _ in range(4)]

    def offer(sampler: Sampler, first: int) -> None:
        for grey in range(first, first + 60):
            sampler.offer(encoded(grey))

    threads = [threading.Thread(target=offer, args=(sampler, 60 * n)) for n, sampler in enumerate(samplers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept(tmp_path)) == 20


def test_a_full_folder_is_not_looked_at_again(tmp_path, monkeypatch):
    sampler = Sampler(Sampling(tmp_path, every=1, most=1))
    sampler.offer(encoded(1))
    monkeypatch.setattr(sampling, "keep", lambda *_, **__: pytest.fail("asked again"))
    sampler.offer(encoded(2))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("something else")])
def test_an_error_is_said_once_and_ends_it(tmp_path, monkeypatch, caplog, error):
    def fail(*_: object) -> None:
        raise error

    sampler = Sampler(Sampling(tmp_path, every=1))
    sampler.offer(encoded(0))
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(Path, "replace", fail)
        sampler.offer(encoded(1))
        sampler.offer(encoded(2))
    sampler.offer(encoded(3))
    why = "No space left on device" if isinstance(error, OSError) else "something else"
    assert caplog.messages == [f"tricade: no more pictures are kept in {tmp_path}: {why}"]
    assert list(kept(tmp_path).values()) == [encoded(0)]  # and no half of a file


def test_settings_travel_through_the_environment():
    given = Sampling(Path("/a folder"), every=7, most=9)
    assert sampling_from_environment({"HOME": "/", **given.as_environment()}) == given
    assert sampling_from_environment({"TRICADE_SAMPLES": "/x"}) == Sampling(Path("/x"), every=100, most=1000)
    assert sampling_from_environment({}) is None
    assert sampling_from_environment({"TRICADE_SAMPLES": "", "TRICADE_SAMPLE_EVERY": "1"}) is None


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "many"])
def test_a_wrong_setting_is_named(text):
    with pytest.raises(BadSettings, match=f"TRICADE_SAMPLE_EVERY: expected a whole number from 1, got '{text}'"):
        sampling_from_environment({"TRICADE_SAMPLES": "/x", "TRICADE_SAMPLE_EVERY": text})


def test_the_server_tells_a_place_that_leads_to_the_folder_once_it_begins(tmp_path):
    samples = Samples(Sampling(tmp_path / "a" / "b", every=1), tmp_path)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "a" / "b").iterdir()) == []
    environment = {"TRICADE_SAMPLES": "/elsewhere", "HOME": "/"}
    samples.settle(environment)
    told = sampling_from_environment(environment)
    assert told == Sampling(tmp_path / "samples", every=1)
    assert not told.folder.exists()
    samples.begin()
    assert told.folder.resolve() == tmp_path / "a" / "b"


def test_without_sampling_the_stubs_are_told_nothing(tmp_path):
    samples = Samples(None, tmp_path)
    environment = {"TRICADE_SAMPLES": "/elsewhere", "TRICADE_SAMPLE_EVERY": "1", "HOME": "/"}
    samples.settle(environment)
    samples.begin()
    assert environment == {"HOME": "/"}
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadSamples, match=r"expected a folder for samples .*file/below: Not a directory; choose"):
        Samples(Sampling(tmp_path / "file" / "below"), tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(BadSamples, match=r"expected a folder for samples .*/proc/self/fdinfo: .*; choose another"):
        Samples(Sampling(Path("/proc/self/fdinfo")), tmp_path)
