"""Who can be measured, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tricade_client import Client
from tricade_tune.host import free_ports

from .answers import Answer, answer_from, difference, text_difference
from .load import Call, Contestant
from .peers.pipeline import Place, Unserved
from .peers.rapidocr import RapidOcr, RapidOcrPool
from .peers.served import PEERS, Served
from .peers.two_calls import TwoCalls

TRICADE, IN_PROCESS = "tricade", "in-process"
CALL_S = 120.0


class Tricade:
    """One call to the served pipeline."""

    name = TRICADE

    def __init__(self, url: str, place: Place) -> None:
        self._client = Client(url, place.pipeline, timeout_s=CALL_S)

    def __enter__(self) -> Call:
        return lambda picture: answer_from(self._client.detect(picture).arrays)

    def __exit__(self, *exception: object) -> None:
        self._client.close()


class InProcess:
    """The same steps in the bench's own process, in as many threads as there are cores; nothing is served."""

    name = IN_PROCESS

    def __init__(self, url: str, place: Place) -> None:  # noqa: ARG002 - it asks no server
        self._pipeline = Unserved(place)
        self._pool = ThreadPoolExecutor(place.workers)  # a queue, so that callers have their turns

    def __enter__(self) -> Call:
        return lambda picture: self._pool.submit(self._answer, picture).result()

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown()

    def _answer(self, picture: bytes) -> Answer:
        return answer_from(self._pipeline.outputs(picture))


HERE: Mapping[str, Callable[[str, Place], Contestant]] = {
    each.name: each for each in (Tricade, InProcess, TwoCalls, RapidOcr, RapidOcrPool)
}
TEXT_ONLY = (RapidOcr.name, RapidOcrPool.name)
QUICK = (TRICADE, IN_PROCESS, TwoCalls.name)
EVERY = (*HERE, *PEERS)


def contestant_from(name: str, *, url: str, place: Place) -> Contestant:
    """By its name; `url` is the gRPC endpoint of tricade's server."""
    if name in HERE:
        return HERE[name](url, place)
    return Served(name, replace(place, port=free_ports(1)[0]))


def comparison_of(name: str) -> Callable[[Answer, Answer], str]:
    """How its answers are compared with the right ones."""
    return text_difference if name in TEXT_ONLY else difference
