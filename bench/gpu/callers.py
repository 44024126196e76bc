"""Callers in processes of their own, so that no interpreter's lock is what is measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient import grpc as triton

from tricade_client import Client

from ..load import Call, Round, closed_loop, open_loop
from ..load import Way as Load
from ..peers.pipeline import Place
from ..peers.two_calls import TwoCalls
from .children import Child, together

PIPELINE, CLASSIFIER, CROP = "weighty", "weighty_colour", (1, 224, 224, 3)
CALL_S = 30.0
CALLERS_EACH = 8  # at least, of a process before another takes some


@dataclass(frozen=True)
class Way:
    """How a picture is answered: `ensemble`, `two-calls` or `classifier`, whose pictures are crops; `repository` is
    where the client's own stages have their settings."""

    name: str
    url: str
    repository: Path = Path()


@dataclass(frozen=True)
class Met:
    """What all callers met, and the seconds of processor time they took."""

    round: Round
    cpu_s: float

    def figures(self) -> dict[str, Any]:
        latency = self.round.latency_ms
        found: dict[str, Any] = {"calls": len(latency), "calls_per_s": self.round.rate}
        if latency:
            found |= {f"p{percent}_ms": float(np.percentile(latency, percent)) for percent in (50, 90, 99)}
            found |= {"mean_ms": float(np.mean(latency)), "client_cpu_ms": 1e3 * self.cpu_s / len(latency)}
        errors = self.round.errors
        return found | {
            "late": self.round.late,
            "errors": len(errors),
            **({"first_error": errors[0]} if errors else {}),
        }


class Callers:
    """So many callers over some of the processes."""

    def __init__(self, processes: Sequence[Child]) -> None:
        self._processes = processes

    def prepare(self, way: Way, picture: bytes, *, callers: int = 1) -> None:
        """Have the processes that will be used connected, and a picture answered in each."""
        used = self._processes[: len(shares_of(callers, len(self._processes)))]
        together(used, [(prepared, {"way": way, "picture": picture})] * len(used), within_s=2 * CALL_S)

    def closed(self, way: Way, pictures: Sequence[bytes], *, callers: int, seconds: float) -> Met:
        """Each sends its next picture when the last one was answered."""
        shares = shares_of(callers, len(self._processes))
        jobs = [(closed, {"way": way, "pictures": pictures, "callers": share, "seconds": seconds}) for share in shares]
        return joined(together(self._processes[: len(shares)], jobs, within_s=seconds + 2 * CALL_S))

    def open(self, way: Way, pictures: Sequence[bytes], *, rate: float, seconds: float) -> Met:
        """Pictures arrive as they do."""
        job = (opened, {"way": way, "pictures": pictures, "rate": rate, "seconds": seconds})
        return joined(together(self._processes[:1], [job], within_s=seconds + 2 * CALL_S))


def shares_of(callers: int, processes: int) -> list[int]:
    """Of each process that has some, as even as can be."""
    used = max(1, min(processes, callers // CALLERS_EACH))
    return [callers // used + (place < callers % used) for place in range(used)]


def joined(mets: Sequence[Met]) -> Met:
    """What callers in several processes met at the same time."""
    rounds = [met.round for met in mets]
    whole = Round(
        tuple(latency for each in rounds for latency in each.latency_ms),
        tuple(error for each in rounds for error in each.errors),
        sum(each.rate for each in rounds),
        sum(each.late for each in rounds),
    )
    return Met(whole, sum(met.cpu_s for met in mets))


def prepared(way: Way, picture: bytes) -> None:
    """In the process that asks."""
    _call_of(way)(picture)


def closed(way: Way, pictures: Sequence[bytes], callers: int, seconds: float) -> Met:
    """In the process that asks."""
    return _met(way, closed_loop(pictures, callers=callers, seconds=seconds))


def opened(way: Way, pictures: Sequence[bytes], rate: float, seconds: float) -> Met:
    """In the process that asks."""
    return _met(way, open_loop(pictures, rate=rate, seconds=seconds, seed=0))


def _met(way: Way, load: Load) -> Met:
    call, began_s = _call_of(way), time.process_time()
    found = load(call)
    return Met(found, time.process_time() - began_s)


_OPEN: dict[str, tuple[Way, ExitStack, Call]] = {}  # of this process, by the way's name


def _call_of(way: Way) -> Call:
    """Open until another server is asked the same way."""
    if way.name in _OPEN and _OPEN[way.name][0] == way:
        return _OPEN[way.name][2]
    if way.name in _OPEN:
        _OPEN.pop(way.name)[1].close()
    stack = ExitStack()
    call = stack.enter_context(_contestant(way))
    _OPEN[way.name] = way, stack, call
    return call


def _contestant(way: Way) -> AbstractContextManager[Call]:
    if way.name == "two-calls":
        return TwoCalls(way.url, Place(way.repository, PIPELINE, 0, 1, 1))
    return _Ensemble(way.url) if way.name == "ensemble" else _Classifier(way.url)


class _Ensemble(AbstractContextManager[Call]):
    """One call a picture."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, PIPELINE, timeout_s=CALL_S)

    def __enter__(self) -> Call:
        return lambda picture: self._client.detect(picture).arrays

    def __exit__(self, *exception: object) -> None:
        self._client.close()


class _Classifier(AbstractContextManager[Call]):
    """The network alone, a crop a call: 224 · 224 · 3 bytes."""

    def __init__(self, url: str) -> None:
        self._client = triton.InferenceServerClient(url)

    def __enter__(self) -> Call:
        return self._classified

    def _classified(self, crop: bytes) -> Any:
        tensor = triton.InferInput("CROPS", list(CROP), "UINT8")
        tensor.set_data_from_numpy(np.frombuffer(crop, np.uint8).reshape(CROP))
        return self._client.infer(CLASSIFIER, [tensor], client_timeout=CALL_S).as_numpy("INDEX")

    def __exit__(self, *exception: object) -> None:
        self._client.close()
