"""RapidOCR, the library whose networks `pipelines/text.yaml` serves, with settings as it has them: in this process,
where it runs one network at a time, and in a pool of processes."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np

from .. import ROOT
from ..answers import Answer
from ..load import Call
from .pipeline import Place

MODELS = ROOT / "models" / "text"


class RapidOcr:
    """A contestant; threads of callers share one engine."""

    name = "rapidocr"

    def __init__(self, url: str, place: Place) -> None:  # noqa: ARG002 - it asks no server
        self._threads = place.threads

    def __enter__(self) -> Call:
        engine = _engine(self._threads)
        return lambda picture: _answer(engine, picture)

    def __exit__(self, *exception: object) -> None:
        pass


class RapidOcrPool:
    """A contestant; each process of the pool has an engine."""

    name = "rapidocr-pool"

    def __init__(self, url: str, place: Place) -> None:  # noqa: ARG002 - it asks no server
        self._place = place
        self._stack = ExitStack()

    def __enter__(self) -> Call:
        pool = self._stack.enter_context(
            ProcessPoolExecutor(
                self._place.workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_open,
                initargs=(self._place.threads,),
            )
        )
        return lambda picture: pool.submit(_answer_of_process, picture).result()

    def __exit__(self, *exception: object) -> None:
        self._stack.close()


def _engine(threads: int) -> Any:
    from rapidocr import RapidOCR  # takes a second, which only this contestant should cost

    return RapidOCR(
        params={
            "Global.log_level": "error",
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "Det.model_path": str(MODELS / "det.onnx"),
            "Cls.model_path": str(MODELS / "cls.onnx"),
            "Rec.model_path": str(MODELS / "rec.onnx"),
        }
    )


def _answer(engine: Any, picture: bytes) -> Answer:
    found = engine(picture)
    corners = np.zeros((0, 4, 2), np.float32) if found.boxes is None else np.asarray(found.boxes, np.float32)
    texts = tuple(found.txts or ())
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    return Answer(boxes, ("text",) * len(texts), {"text": texts})


_of_process: list[Any] = []


def _open(threads: int) -> None:
    _of_process.append(_engine(threads))


def _answer_of_process(picture: bytes) -> Answer:
    return _answer(_of_process[0], picture)
