"""`tricade_build.pictures`: which files of a folder are taken, their hash, and what is refused."""

from __future__ import annotations

import hashlib
import io
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tricade_build.errors import BuildError, SampleError
from tricade_build.pictures import LIMITS, MIN_PICTURES, Pictures, pictures_from
from tricade_build.spec import Limits

WHERE = "calibration.images"


def encoded(seed: int, *, form: str = "PNG", size: tuple[int, int] = (24, 20), level: int | None = None) -> bytes:
    """Large random blocks, or one grey `level`."""
    blocks = np.random.default_rng(seed).integers(0, 256, (3, 4, 3), np.uint8)
    picture = Image.fromarray(blocks).resize(size, Image.Resampling.NEAREST)
    if level is not None:
        picture = Image.new("RGB", size, (level, level, level))
    file = io.BytesIO()
    picture.save(file, form)
    return file.getvalue()


def fill(folder: Path, count: int, *, first: int = 0) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{place:03}.png" for place in range(first, first + count)]
    for place, file in enumerate(files, start=first):
        file.write_bytes(encoded(place))
    return files


def taken(folder: Path, *, count: int = 256) -> Pictures:
    return pictures_from(folder, count=count, where=WHERE)


def checked(folder: Path, *, count: int, limits: Limits) -> None:
    taken(folder, count=count).check(limits)


def refusal(folder: Path, *, count: int = 256, limits: Limits = LIMITS) -> str:
    with pytest.raises(SampleError) as caught:
        checked(folder, count=count, limits=limits)
    assert isinstance(caught.value, BuildError)
    return str(caught.value)


@pytest.mark.parametrize(
    ("there", "count", "places"),
    [
        (8, 256, range(8)),
        (8, 8, range(8)),
        (16, 8, range(0, 16, 2)),
        (20, 8, [0, 2, 5, 7, 10, 12, 15, 17]),  # floor(i · 20 / 8)
        (9, 8, [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_pictures_are_chosen_evenly_over_the_sorted_names(
    tmp_path: Path, there: int, count: int, places: list[int]
) -> None:
    files = fill(tmp_path, there)
    pictures = taken(tmp_path, count=count)
    assert pictures.files == tuple(files[place] for place in places)
    assert pictures == taken(tmp_path, count=count)
    assert [pictures.encoded(i) for i in range(len(pictures.files))] == [encoded(place) for place in places]
    pictures.check()


def test_subfolders_and_all_suffixes_count_and_nothing_else(tmp_path: Path) -> None:
    forms = {"a.JPG": "JPEG", "b.jpeg": "JPEG", "c.Png": "PNG", "d.webp": "WEBP", "e.bmp": "BMP", "f.tif": "TIFF"}
    names = [*forms, "sub/g.TIFF", "sub/deeper/h.jpg"]
    for seed, name in enumerate(names):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(seed, form=forms.get(name, "TIFF" if name.endswith("TIFF") else "JPEG")))
    for other in ("labels.txt", "clip.gif", ".hidden.jpg", "._a.JPG", ".thumbnails/a.png", "sub/png"):
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).write_bytes(b"no picture")
    (tmp_path / "folder.png").mkdir()

    pictures = taken(tmp_path)

    assert [file.relative_to(tmp_path).as_posix() for file in pictures.files] == sorted(names)
    pictures.check()


def test_the_hash_is_of_the_contents_alone(tmp_path: Path) -> None:
    fill(tmp_path / "one", 9)
    for place in range(9):
        file = tmp_path / "two" / f"{8 - place}" / "picture.PNG"
        file.parent.mkdir(parents=True)
        file.write_bytes(encoded(place))
    one, two = taken(tmp_path / "one"), taken(tmp_path / "two")
    assert one.sha256 == two.sha256
    digests = sorted(hashlib.sha256(encoded(place)).digest() for place in range(9))
    assert one.sha256 == hashlib.sha256(b"".join(digests)).hexdigest()

    (tmp_path / "two" / "3" / "picture.PNG").write_bytes(encoded(99))
    assert taken(tmp_path / "two").sha256 != one.sha256
    assert taken(tmp_path / "one", count=8).sha256 != one.sha256


def test_the_hash_needs_no_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 8)
    monkeypatch.setattr("tricade_build.pictures.picture_from_bytes", None)
    taken(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == (
        f"calibration.images: expected a folder of pictures; {tmp_path / 'none'} is not there; "
        "name one with at least 8 pictures of what will be served"
    )
    file = tmp_path / "picture.png"
    file.write_bytes(encoded(0))
    assert f"{file} is a file" in refusal(file)


def test_a_folder_without_pictures(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    message = refusal(tmp_path)
    assert "expected pictures (jpg, jpeg, png, webp, bmp, tif, tiff)" in message
    assert f"{tmp_path} holds none" in message


def test_too_few_pictures(tmp_path: Path) -> None:
    fill(tmp_path, MIN_PICTURES - 1)
    assert refusal(tmp_path) == (
        f"calibration.images: expected at least 8 different pictures; got 7 from {tmp_path}; "
        "add pictures of what will be served"
    )


def test_copies_do_not_count(tmp_path: Path) -> None:
    fill(tmp_path, 7)
    for name in ("x.png", "y.png", "z.png"):
        (tmp_path / name).write_bytes(encoded(3))
    assert f"got 10 from {tmp_path}, of which 7 differ" in refusal(tmp_path)


def test_a_count_that_is_too_small(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    message = refusal(tmp_path, count=5)
    assert f"calibration.count takes 5 of the 20 in {tmp_path}; raise it" in message


def test_unreadable_ones_are_named(tmp_path: Path) -> None:
    files = fill(tmp_path, 20)
    for place in (2, 5, 7, 11, 19):
        files[place].write_bytes(encoded(place)[:60] if place % 2 else b"never a picture %d" % place)
    message = refusal(tmp_path)
    assert message.startswith(
        "calibration.images: expected pictures that can be decoded; 5 of 20 cannot: "
        "002.png (expected JPEG, PNG, WebP, BMP or TIFF, got 17 bytes beginning with b'never a pict'), 005.png ("
    )
    assert message.endswith(") and 2 more; remove or replace them")


def test_the_servers_limits_hold(tmp_path: Path) -> None:
    fill(tmp_path, 8)
    (tmp_path / "wide.png").write_bytes(encoded(50, size=(200, 10)))
    assert "1 of 9 cannot: wide.png (expected at most 1000 pixels, got 200 x 10" in refusal(
        tmp_path, limits=Limits(max_pixels=1000)
    )
    taken(tmp_path).check(Limits(max_pixels=2000))


def test_a_file_that_vanishes(tmp_path: Path) -> None:
    files = fill(tmp_path, 8)
    pictures = taken(tmp_path)
    files[4].unlink()
    with pytest.raises(SampleError, match=r"calibration.images: expected a picture, .*004.png cannot be read: No such"):
        pictures.check()


@pytest.mark.parametrize(("step", "alike"), [(1, True), (2, False)])
def test_pictures_that_look_all_alike(tmp_path: Path, step: int, alike: bool) -> None:
    """Greys of 100 to 103 are at most 1.5 from their mean, those of 100 to 106 are 3."""
    for place in range(12):
        level = 100 + step * (place % 4)
        (tmp_path / f"{place:02}.png").write_bytes(encoded(0, level=level, size=(24, 20 + place)))
    if alike:
        assert refusal(tmp_path) == (
            "calibration.images: expected pictures that differ, as those do that will be served; "
            f"the 12 in {tmp_path} look all alike; add others"
        )
    else:
        taken(tmp_path).check()


def test_256_pictures_of_200_kb_are_hashed_in_no_time(tmp_path: Path) -> None:
    """A build that changes nothing has two seconds for all it does."""
    noise = np.random.default_rng(0).bytes(200_000)
    for place in range(256):
        (tmp_path / f"{place}.jpg").write_bytes(noise + bytes([place]))
    began = time.process_time()
    taken(tmp_path)
    assert time.process_time() - began < 1
