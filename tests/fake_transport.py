"""A server for the client's tests, without gRPC: an image of b"3" holds three detections, one of b"bad" is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager

import numpy as np

from tricade_client.errors import NotFound, ServerRefused, Unavailable


def answer_of(*counts: int) -> dict[str, np.ndarray]:
    """The tensors of a pipeline with the classifiers `kind` (top 2) and `text`; detection i scores 1 - i / 10."""
    rows = [row for count in counts for row in range(count)]
    n = len(rows)
    left = np.array(rows, np.float32) * 10
    boxes = np.stack([left, left, left + 8, left + 4], axis=1)
    return {
        "COUNT": np.array(counts, np.int32),
        "TRUNCATED": np.zeros(len(counts), np.int32),
        "SIZE": np.tile(np.array([[30, 40]], np.int32), (len(counts), 1)),
        "BOXES": boxes,
        "CORNERS": boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(n, 4, 2),
        "SCORES": 1 - np.array(rows, np.float32) / 10,
        "LABELS": np.array([b"text"] * n, np.object_),
        "KIND_LABELS": np.array([[b"", b""] if row else [b"big", b"small"] for row in rows], np.object_).reshape(n, 2),
        "KIND_SCORES": np.array([[0, 0] if row else [0.75, 0.25] for row in rows], np.float32).reshape(n, 2),
        "TEXT_LABELS": np.array([f"wörd {row}".encode() for row in rows], np.object_).reshape(n, 1),
        "TEXT_SCORES": np.full((n, 1), 0.5, np.float32),
    }


class FakeTransport:
    """Notes every request, and how many were under way at once."""

    unknown = "is not found"  # what is said of an unknown model

    def __init__(self, *, max_images="2", models=("text", "text_preprocess", "text_crop"), waits_for=None) -> None:
        self.max_images = max_images
        self.names = models
        self.asked: list[tuple[bytes, ...]] = []
        self.requests, self.contexts = [], []
        self.limits_read = self.closed = self.most = self._running = 0
        self.waits_for = waits_for  # requests that must be under way before any is answered
        self._lock = threading.Lock()

    async def infer(self, request, context):
        with self._under_way(request, context):
            await self._waited(context)
            return self._answered(request)

    async def parameters(self, model, _context):
        self.limits_read += 1
        if self.max_images is None:
            raise Unavailable("This protocol is restricted")
        assert model == "text_preprocess"
        return {"max_images": self.max_images, "size": "960,960"}

    async def models(self, _context):
        if self.names is None:
            raise Unavailable("This protocol is restricted")
        return self.names

    async def close(self):
        self.closed += 1

    @contextmanager
    def _under_way(self, request, context):
        with self._lock:
            self.asked.append(tuple(request.inputs[0].data))
            self.requests.append(request)
            self.contexts.append(context)
            self._running += 1
            self.most = max(self.most, self._running)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    async def _waited(self, context):
        while self.waits_for and self.most < self.waits_for:
            context.deadline.left_s()
            await self._moment()

    async def _moment(self):
        time.sleep(0.001)

    def _answered(self, request):
        if request.model != "text":
            raise NotFound(f"Request for unknown model: '{request.model}' {self.unknown}")
        images = list(request.inputs[0].data)
        if b"bad" in images:
            raise ServerRefused(f"in ensemble 'text', image {images.index(b'bad')}: cannot be decoded")
        answer = answer_of(*(int(image) if len(image) < 3 else 1 for image in images))
        return {name: array for name, array in answer.items() if not request.outputs or name in request.outputs}


class AsyncFakeTransport(FakeTransport):
    """The same, suspending where the other one blocks."""

    async def _moment(self):
        await asyncio.sleep(0)
