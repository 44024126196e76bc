"""The frame store: right pixels or a clear error, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tricade import frames
from tricade.errors import FrameLost
from tricade.frames import FrameReader, FrameWriter, remove_dead_rings

NOTHING_INLINE = np.empty(0, np.uint8)


def put(writer: FrameWriter, height: int, width: int, value: int) -> np.ndarray | None:
    placed = writer.place(height, width)
    if placed is None:
        return None
    handle, pixels = placed
    pixels[...] = value
    writer.publish(handle)
    return handle


@pytest.fixture
def writer(tmp_path: Path):
    writer = FrameWriter(ring_bytes=3000, slots=4, directory=tmp_path)
    yield writer
    writer.close()


@pytest.fixture
def reader(tmp_path: Path) -> FrameReader:
    return FrameReader(tmp_path)


def test_a_picture_is_read_where_it_was_written(writer, reader):
    frame = reader.open(put(writer, 10, 20, 7), NOTHING_INLINE)
    assert frame.pixels.shape == (10, 20, 3)
    assert (frame.pixels == 7).all()
    frame.check()


def test_the_pixels_are_not_a_copy_and_read_only(writer, reader):
    handle, pixels = writer.place(1, 1)
    writer.publish(handle)
    frame = reader.open(handle, NOTHING_INLINE)
    pixels[...] = 9
    assert frame.pixels.tolist() == [[[9, 9, 9]]]
    assert not frame.pixels.flags.writeable


def test_inline_pictures_come_from_the_tensor(reader):
    inline = np.arange(24, dtype=np.uint8)
    frame = reader.open(np.array([0, 0, 0, 6, 2, 3]), inline)
    assert frame.pixels.tolist() == np.arange(6, 24).reshape(2, 3, 3).tolist()
    frame.check()
    frame.release()


@pytest.mark.parametrize(("height", "width", "fits"), [(0, 0, True), (10, 100, True), (10, 101, False)])
def test_what_is_larger_than_the_ring_finds_no_place(writer, height, width, fits):
    assert (put(writer, height, width, 1) is not None) == fits


def test_a_full_ring_has_room_again_after_a_release(writer, reader):
    first, second = put(writer, 10, 50, 1), put(writer, 10, 50, 2)
    assert put(writer, 1, 1, 3) is None
    reader.open(first, NOTHING_INLINE).release()
    third = put(writer, 10, 50, 3)
    assert (reader.open(third, NOTHING_INLINE).pixels == 3).all()
    assert (reader.open(second, NOTHING_INLINE).pixels == 2).all()


def test_all_slots_in_use_means_no_place(writer):
    assert all(put(writer, 1, 1, 1) is not None for _ in range(4))
    assert put(writer, 1, 1, 1) is None


def test_slots_of_calls_that_died_are_free_again_in_time(writer, reader, monkeypatch):
    """There is room for their pixels all along."""
    lost = [put(writer, 1, 1, value) for value in range(4)]
    monkeypatch.setattr(frames, "ABANDONED_AFTER_S", -1.0)
    assert put(writer, 1, 1, 9) is not None
    with pytest.raises(FrameLost, match="reused"):
        reader.open(lost[0], NOTHING_INLINE)


def test_a_dropped_handle_leaves_its_place_at_once(writer):
    handles = [put(writer, 1, 1, value) for value in range(4)]
    writer.drop(handles[2])
    assert put(writer, 1, 1, 9) is not None
    assert put(writer, 1, 1, 9) is None


@pytest.mark.parametrize("words", [[0, 0, 0, 1, 2, 3], [0, 0, 0, -1, 2, 3], [0, 0, 0, 0, 0, 3], [0, 0, 0, 0, 2, -3]])
def test_an_inline_picture_lies_within_what_came(reader, words):
    with pytest.raises(FrameLost, match="outside the pixels"):
        reader.open(np.array(words), np.zeros(18, np.uint8))


def test_a_released_handle_is_lost_once_its_place_is_reused(writer, reader):
    old = put(writer, 10, 100, 1)
    reader.open(old, NOTHING_INLINE).release()
    put(writer, 10, 100, 2)
    with pytest.raises(FrameLost, match="reused"):
        reader.open(old, NOTHING_INLINE)


def test_a_place_reused_while_it_is_read_is_an_error_afterwards(writer, reader, monkeypatch):
    frame = reader.open(put(writer, 10, 100, 1), NOTHING_INLINE)
    monkeypatch.setattr(frames, "ABANDONED_AFTER_S", -1.0)
    assert put(writer, 10, 100, 2) is not None
    with pytest.raises(FrameLost, match="reused"):
        frame.check()


def test_a_late_release_does_not_free_the_next_picture(writer, reader, monkeypatch):
    late = reader.open(put(writer, 10, 100, 1), NOTHING_INLINE)
    with monkeypatch.context() as patch:
        patch.setattr(frames, "ABANDONED_AFTER_S", -1.0)
        second = put(writer, 10, 100, 2)
    late.release()
    assert put(writer, 10, 100, 3) is None
    assert (reader.open(second, NOTHING_INLINE).pixels == 2).all()


def test_abandoned_pictures_are_kept_as_long_as_there_is_room(writer, reader, monkeypatch):
    monkeypatch.setattr(frames, "ABANDONED_AFTER_S", -1.0)
    first = put(writer, 10, 50, 1)
    put(writer, 10, 50, 2)
    assert (reader.open(first, NOTHING_INLINE).pixels == 1).all()


def test_pixels_are_unreadable_until_they_are_published(writer, reader):
    handle, _ = writer.place(2, 2)
    with pytest.raises(FrameLost):
        reader.open(handle, NOTHING_INLINE)


@pytest.mark.parametrize(
    ("column", "value"), [(0, 12345), (1, 4), (1, -1), (2, 1), (3, 3000), (3, -1), (4, 0), (4, 2**40), (5, -3)]
)
def test_a_forged_handle_is_refused(writer, reader, column, value):
    handle = put(writer, 10, 20, 7)
    handle[column] = value
    with pytest.raises(FrameLost):
        reader.open(handle, NOTHING_INLINE)


def test_a_closed_ring_is_gone_but_what_is_mapped_stays_readable(tmp_path, reader):
    writer = FrameWriter(ring_bytes=300, slots=1, directory=tmp_path)
    frame = reader.open(put(writer, 10, 10, 5), NOTHING_INLINE)
    writer.close()
    assert list(tmp_path.iterdir()) == []
    assert (frame.pixels == 5).all()
    frame.check()


def test_only_rings_of_dead_processes_are_removed(tmp_path, writer):
    code = (
        "import sys, time; from pathlib import Path; from tricade.frames import FrameWriter\n"
        "w = FrameWriter(ring_bytes=300, slots=1, directory=Path(sys.argv[1])); print('up', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"up\n"
        assert remove_dead_rings(tmp_path) == []
        assert len(list(tmp_path.iterdir())) == 2
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    assert len(remove_dead_rings(tmp_path)) == 1
    assert list(tmp_path.iterdir()) == [writer.path]


def test_a_ring_that_does_not_fit_the_disk_is_an_error_at_once(tmp_path):
    with pytest.raises(OSError, match=r"space|large"):
        FrameWriter(ring_bytes=2**62, slots=1, directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("slots", [0, frames.MAX_SLOTS + 1])
def test_the_number_of_slots_has_bounds(tmp_path, slots):
    with pytest.raises(ValueError, match="ring_slots should be 1 to 255"):
        FrameWriter(ring_bytes=300, slots=slots, directory=tmp_path)


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12), st.booleans()), max_size=40))
def test_pictures_in_flight_never_overlap(tmp_path_factory, pictures):
    directory = tmp_path_factory.mktemp("rings")
    writer, reader = FrameWriter(ring_bytes=1000, slots=4, directory=directory), FrameReader(directory)
    in_flight: dict[int, np.ndarray] = {}
    for value, (height, width, release) in enumerate(pictures):
        handle = put(writer, height, width, value)
        if handle is not None:
            in_flight[value] = handle
        for known, other in in_flight.items():
            assert (reader.open(other, NOTHING_INLINE).pixels == known).all()
        if release and in_flight:
            reader.open(in_flight.pop(min(in_flight)), NOTHING_INLINE).release()
    writer.close()
