"""The frame store: decoded pictures stay in shared memory, only a handle travels from step to step.

Each writer owns one ring: a file below `/dev/shm` of fixed size, holding a table of slots and the pixels. One
process writes it. A slot has two words: `generation`, written by the writer alone, names the picture that lies
there (0 while pixels change); `done` repeats the generation that the reader has finished with.
Nothing is locked: a reader checks the generation before and after it uses the pixels, so that a slot given
away meanwhile is an error (`FrameLost`) and never another call's picture.

A writer holds an exclusive `flock` on its ring for life. A ring nobody locks belongs to a dead process and
is removed when the next writer starts.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import FrameLost
from .packet import Field, Packet

DIRECTORY = Path("/dev/shm")
PREFIX = "tricade-"
ABANDONED_AFTER_S = 30.0  # a picture unread for so long belongs to a call that died
_HEADER = 4096
_WORDS = 2  # per slot: generation, done; the header's last word is the number of slots
MAX_SLOTS = (_HEADER - 8) // (_WORDS * 8)
CHANNELS = 3

Handle = NDArray[np.int64]  # (6,): ring, slot, generation, byte offset, height, width
HANDLE = 6
# A request's pictures, as `preprocess` hands them to `crop`.
FRAME = Packet(
    "FRAME",
    Field("HANDLES", np.int64, (-1, HANDLE)),
    Field("TILES", np.int32, (-1, 5)),
    Field("MIN_SCORE", np.float32, (-1,)),  # (1,), or (0,) where the pipeline's own holds
    Field("PIXELS", np.uint8, (-1,)),  # the pictures that found no place in a ring
)


@dataclass
class _Live:
    """A slot in use: the writer's own notes."""

    slot: int
    offset: int
    end: int
    generation: int
    since: float


class FrameWriter:
    """One ring of `ring_bytes` for pixels and `slots` pictures at a time; raises `OSError` without the room."""

    def __init__(self, *, ring_bytes: int, slots: int, directory: Path = DIRECTORY) -> None:
        remove_dead_rings(directory)
        if not 1 <= slots <= MAX_SLOTS:
            raise ValueError(f"ring_slots should be 1 to {MAX_SLOTS}, is {slots}")
        self.token = secrets.randbelow(2**62) + 1
        self.path = _path_of(self.token, directory)
        self._bytes = ring_bytes
        self._file = _create(self.path, _HEADER + ring_bytes)
        self._map = mmap.mmap(self._file, _HEADER + ring_bytes)
        np.frombuffer(self._map, np.int64, 1, _HEADER - 8)[0] = slots
        self._generations, self._done = _words(self._map, slots)
        self._next = secrets.randbelow(2**48) + 1
        self._live: list[_Live] = []
        self._free = list(range(slots))

    def place(self, height: int, width: int) -> tuple[Handle, NDArray[np.uint8]] | None:
        """A handle and the place (height, width, 3) to decode into, or None where there is no room.

        The handle is valid once `publish` was called with it.
        """
        size = height * width * CHANNELS
        self._reclaim(abandoned=False)
        offset = self._gap(size)
        if offset is None or not self._free:
            self._reclaim(abandoned=True)
            offset = self._gap(size)
        if offset is None or not self._free:
            return None
        slot = self._free.pop()
        self._generations[slot] = 0
        self._next += 1
        self._live.append(_Live(slot, offset, offset + size, self._next, time.monotonic()))
        self._live.sort(key=lambda live: live.offset)
        handle = np.array([self.token, slot, self._next, offset, height, width], np.int64)
        return handle, _pixels(self._map, offset, height, width)

    def publish(self, handle: Handle) -> None:
        """The pixels are complete: readers may use the handle from now on."""
        self._generations[int(handle[1])] = handle[2]

    def drop(self, handle: Handle) -> None:
        """Give a place back whose handle no reader has."""
        self._done[int(handle[1])] = handle[2]

    def close(self) -> None:
        """Remove the ring; readers keep what they have mapped."""
        self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _gap(self, size: int) -> int | None:
        """The first offset with `size` free bytes."""
        start = 0
        for live in self._live:
            if live.offset - start >= size:
                return start
            start = live.end
        return start if self._bytes - start >= size else None

    def _reclaim(self, *, abandoned: bool) -> None:
        oldest = time.monotonic() - ABANDONED_AFTER_S
        kept = []
        for live in self._live:
            if self._done[live.slot] == live.generation or (abandoned and live.since < oldest):
                self._generations[live.slot] = 0
                self._free.append(live.slot)
            else:
                kept.append(live)
        self._live = kept


@dataclass(frozen=True)
class Frame:
    """A picture in the store or inline: `pixels` (height, width, 3) RGB, read-only."""

    pixels: NDArray[np.uint8]
    _ring: _Ring | None = None
    _slot: int = 0
    _generation: int = 0

    def check(self) -> None:
        """Raise `FrameLost` unless the pixels were this picture's all along; call it after using them."""
        if self._ring is not None and self._ring.generations[self._slot] != self._generation:
            raise FrameLost("the picture's place in the frame store was reused before its crops were cut; call again")

    def release(self) -> None:
        """Give the place back."""
        if self._ring is not None:
            self._ring.done[self._slot] = self._generation


class FrameReader:
    """Maps writers' rings as handles name them."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._directory = directory
        self._rings: dict[int, _Ring] = {}

    def open(self, handle: Handle, inline: NDArray[np.uint8]) -> Frame:
        """The picture behind a handle; `inline` (bytes,) holds those of ring 0. Raises `FrameLost`."""
        token, slot, generation, offset, height, width = handle.tolist()
        if token == 0:
            size = height * width * CHANNELS
            if min(offset, height - 1, width - 1) < 0 or offset + size > len(inline):
                raise FrameLost("the handle points outside the pixels that came with it")
            return Frame(inline[offset : offset + size].reshape(height, width, CHANNELS))
        ring = self._ring(token)
        if not 0 <= slot < len(ring.generations) or not ring.holds(offset, height, width):
            raise FrameLost("the handle points outside its ring of the frame store")
        pixels = _pixels(ring.map, offset, height, width)
        pixels.flags.writeable = False
        frame = Frame(pixels, ring, slot, generation)
        frame.check()
        return frame

    def close(self) -> None:
        """Forget all rings; their memory goes with the last array that looks at it."""
        self._rings.clear()

    def _ring(self, token: int) -> _Ring:
        if token not in self._rings:
            self._rings = {known: ring for known, ring in self._rings.items() if ring.path.exists()}
            self._rings[token] = _Ring.open(_path_of(token, self._directory))
        return self._rings[token]


@dataclass(frozen=True)
class _Ring:
    """Another process's ring."""

    path: Path
    map: mmap.mmap
    generations: NDArray[np.int64]
    done: NDArray[np.int64]

    @classmethod
    def open(cls, path: Path) -> _Ring:
        try:
            with path.open("r+b") as file:
                mapped = mmap.mmap(file.fileno(), 0)
        except OSError as error:
            raise FrameLost("the process that decoded the picture is gone; call again") from error
        slots = int(np.frombuffer(mapped, np.int64, 1, _HEADER - 8)[0])
        return cls(path, mapped, *_words(mapped, slots))

    def holds(self, offset: int, height: int, width: int) -> bool:
        size = height * width * CHANNELS
        return min(offset, height - 1, width - 1) >= 0 and _HEADER + offset + size <= len(self.map)


def remove_dead_rings(directory: Path = DIRECTORY) -> list[Path]:
    """Remove the rings no living process locks, and say which."""
    return [path for path in _rings(directory) if _removed_if_dead(path)]


def _rings(directory: Path) -> Iterator[Path]:
    yield from directory.glob(f"{PREFIX}*")


def _removed_if_dead(path: Path) -> bool:
    with suppress(OSError), path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False


def _path_of(token: int, directory: Path) -> Path:
    return directory / f"{PREFIX}{token:016x}"


def _create(path: Path, size: int) -> int:
    """A locked file of `size` bytes that really has them: a sparse one would end in SIGBUS when memory is short."""
    descriptor = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.posix_fallocate(descriptor, 0, size)
        # Only with a folder's descriptor, unused here, does Python follow the link to the nameless file.
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _words(mapped: mmap.mmap, slots: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    table = np.frombuffer(mapped, np.int64, slots * _WORDS).reshape(slots, _WORDS)
    return table[:, 0], table[:, 1]


def _pixels(mapped: mmap.mmap, offset: int, height: int, width: int) -> NDArray[np.uint8]:
    return np.ndarray((height, width, CHANNELS), np.uint8, mapped, _HEADER + offset)
