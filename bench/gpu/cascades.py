"""The served cascade under load: one call a picture, or two; few objects or many; batches or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cascade
import numpy as np

from tricade_client import Client

from .callers import CROP, PIPELINE, Callers, Met, Way
from .engines import NETWORKS, OBJECTS, Rates, bound_of
from .host import gpu_watched
from .options import Options
from .results import Results
from .served import Server, between

DISTINCT = 8  # pictures that callers send in turn
MARGIN_S = 3.0
WARM_UP_S = 1.5


@dataclass(frozen=True)
class Load:
    """How pictures are sent: by so many callers that wait for answers, or so many a second."""

    way: str
    shown: Sequence[bytes]
    seconds: float
    callers: int = 0
    rate: float = 0.0


@dataclass(frozen=True)
class Cascade:
    """A running server and its callers; `rates` are those of its networks alone, `plain` the same repository for
    clients that run the stages themselves; `about` goes with every figure."""

    options: Options
    results: Results
    callers: Callers
    server: Server
    plain: Path
    rates: Rates
    about: dict[str, Any]

    def warm(self) -> bool:
        """Answers of each kind of picture are counted, and batches get their CUDA graphs. Whether it answers."""

        def measured() -> dict[str, Any]:
            found = {}
            with Client(self.server.url, PIPELINE, timeout_s=30) as client:
                for count in sorted({1, OBJECTS, *self.options.objects}):
                    found[str(count)] = len(client.detect(pictures(count, 1)[0]).detections)
            for callers in {self.options.few, self.options.busy}:
                load = Load("ensemble", pictures(OBJECTS), WARM_UP_S, callers)
                self._under(load, self._way("ensemble"))
            return {"found": found, "said": self.server.said, "processes": _counted(self.server)}

        return self.results.measure("server", 10, measured, **self.about) is not None

    def ensemble(self, callers: int) -> None:
        """Closed loop; also as a part of what the networks alone would allow, and where the time goes."""
        self._measure("ensemble", Load("ensemble", pictures(OBJECTS), self.options.seconds, callers), objects=OBJECTS)

    def two_calls(self, callers: int) -> None:
        """The same by one call for each network, what lies between them in the client."""
        self._measure("two-calls", Load("two-calls", pictures(OBJECTS), self.options.seconds, callers), objects=OBJECTS)

    def objects(self, count: int) -> None:
        """So many in a picture."""
        load = Load("ensemble", pictures(count), self.options.seconds, self.options.few)
        self._measure("objects", load, objects=count)

    def stream(self) -> None:
        """Open loop of pictures with one object each."""
        load = Load("ensemble", pictures(1), self.options.open_seconds, rate=self.options.rate)
        self._measure("open loop", load, objects=1)

    def classifier(self) -> None:
        """Closed loop on the classifier alone, one crop a call."""
        random = np.random.default_rng(0)
        crops = [random.integers(0, 256, CROP, np.uint8).tobytes() for _ in range(DISTINCT)]
        self._measure("classifier alone", Load("classifier", crops, self.options.seconds, self.options.busy))

    def _measure(self, what: str, load: Load, *, objects: int = 0) -> None:
        def measured() -> dict[str, Any]:
            way = self._way(load.way)
            self.callers.prepare(way, load.shown[0], callers=load.callers)
            before = self.server.moment()
            with gpu_watched() as samples:
                met = self._under(load, way)
            after = self.server.moment()
            busy = {"gpu_busy_percent": float(np.mean(samples))} if samples else {}
            return {**met.figures(), **self._derived(met, objects), **busy, **between(before, after, self.server.stubs)}

        parameters = {"callers": load.callers} if load.callers else {"rate": load.rate}
        if objects:
            parameters["objects"] = objects
        self.results.measure(what, load.seconds + MARGIN_S, measured, **self.about, **parameters)

    def _under(self, load: Load, way: Way) -> Met:
        if load.callers:
            return self.callers.closed(way, load.shown, callers=load.callers, seconds=load.seconds)
        return self.callers.open(way, load.shown, rate=load.rate, seconds=load.seconds)

    def _derived(self, met: Met, objects: int) -> dict[str, Any]:
        """Of pictures."""
        if not objects or not met.round.latency_ms or not met.round.rate:
            return {}
        found = {
            "p50_ms_an_object": float(np.percentile(met.round.latency_ms, 50)) / objects,
            "ms_a_picture": 1e3 / met.round.rate,
        }
        if len(self.rates) == len(NETWORKS):
            found["of_engine_bound"] = met.round.rate / bound_of(self.rates, objects)
        return found

    def _way(self, name: str) -> Way:
        return Way(name, self.server.url, self.plain)


def pictures(objects: int, count: int = DISTINCT) -> list[bytes]:
    """640 × 640, JPEG, each with so many objects in other places."""
    return [
        cascade.picture(cascade.objects(objects, seed=1000 * objects + seed), scale=2, form="JPEG")
        for seed in range(count)
    ]


def _counted(server: Server) -> dict[str, int]:
    models = sorted(server.stubs.values())
    return {model: models.count(model) for model in models}
