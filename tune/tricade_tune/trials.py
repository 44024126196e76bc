"""Trials: a pipeline served with a setting, under open-loop load."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tritonclient.utils import InferenceServerException

from tricade.errors import CutOff
from tricade.publishing import at_rest
from tricade_client import Client, TricadeError
from tricade_server.errors import LoadFailed

from .errors import BadPictures, BadPipelineModels, ProcessDied
from .load import CREW, IN_FLIGHT, Call, arrivals, open_loop, timed_call
from .measured import measured_from
from .models import Models, configured
from .pictures import Picture, counted
from .search import Measured, failure
from .served import Server, served
from .setting import Setting
from .variants import variant

SEED, WARM_UP_SEED = 0, 1
WARM_UP_S = 1.0
MOST_IN_FLIGHT = 512
LEAST_PATIENCE_S, LEAST_TIMEOUT_S = 2.0, 10.0  # for a call to start, and to be answered
TARGETS = 4  # or so many times the target


@dataclass(frozen=True)
class Load:
    """`stream` gives so many pictures, the same ones each time; a call that is `target_ms` late has missed anyway."""

    stream: Callable[[int], Sequence[bytes]]
    rate: float
    seconds: float
    target_ms: float

    @property
    def in_flight(self) -> int:
        """Enough that calls within twice the target never wait for one another in the caller."""
        return min(MOST_IN_FLIGHT, max(IN_FLIGHT, math.ceil(2 * self.rate * self.target_ms / 1e3)))

    def patience_s(self, least_s: float) -> float:
        return max(least_s, TARGETS * self.target_ms / 1e3)


class Trials(AbstractContextManager["Trials"]):
    """One server at a time; it stays as long as its setting is asked for."""

    def __init__(self, pipeline: str, repository: Path) -> None:
        self._pipeline, self._repository = pipeline, repository
        self._stack = ExitStack()
        self._serving: tuple[Setting, Server] | None = None
        self._is_warm = False

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def counts(self, setting: Setting, pictures: Sequence[Picture]) -> list[int]:
        """Objects of each picture. Raises `BadPictures` for one that is refused, `ProcessDied` where a process of the
        server did not live through it, `ServeError` where the setting cannot be served."""
        try:
            with self._client(setting) as client:
                return counted(client, pictures)
        except (BadPictures, TricadeError) as error:
            if death := self._death():
                raise ProcessDied(f"expected a pipeline that answers --images; {death}") from error
            raise

    def measured(self, setting: Setting, load: Load) -> Measured:
        """Warm, then under load. A setting that cannot be served, or a trial that a process of the server did not live
        through, has no figures, and says why."""
        try:
            measured = self._measured(setting, load)
            failed = self._void()
        except (LoadFailed, InferenceServerException) as error:
            failed = self._void() or f"cannot be served: {error}"
        if not failed:
            return measured
        self._stop()
        return failure(" ".join(failed.split()))

    def _measured(self, setting: Setting, load: Load) -> Measured:
        server, patience_s = self._served(setting), load.patience_s(LEAST_PATIENCE_S)
        pictures = load.stream(len(arrivals(load.rate, seconds=load.seconds, seed=SEED)))
        under_load = partial(open_loop, pictures, rate=load.rate, in_flight=load.in_flight, patience_s=patience_s)
        with self._client(setting, timeout_s=load.patience_s(LEAST_TIMEOUT_S)) as client:

            def call(picture: bytes) -> object:
                return client.detect(picture).arrays

            if not self._is_warm:
                _call_at_once(call, pictures, 2 * max(step.instances for step in setting.steps))
                under_load(seconds=WARM_UP_S, seed=WARM_UP_SEED)(call)
                self._is_warm = True
            before = server.moment()
            found = under_load(seconds=load.seconds, seed=SEED)(call)
            measured = measured_from(found, before, server.moment(), pipeline=self._pipeline, setting=setting)
        return replace(measured, fell_back=_own_names(server.fell_back, self._pipeline))

    def _client(self, setting: Setting, *, timeout_s: float = LEAST_TIMEOUT_S) -> Client:
        return Client(self._served(setting).url, self._pipeline, timeout_s=timeout_s)

    def _void(self) -> str:
        death = self._death()
        return f"void: {death}" if death else ""

    def _death(self) -> str:
        return self._serving[1].death() if self._serving else ""

    def _served(self, setting: Setting) -> Server:
        if self._serving is None or self._serving[0] != setting:
            self._stop()
            folder = self._stack.enter_context(TemporaryDirectory(dir=self._repository.parent))
            copy = variant(self._repository, Path(folder) / "repository", configured(setting, self._pipeline))
            try:
                self._serving = setting, self._stack.enter_context(served(copy))
            except BaseException:
                self._stop()
                raise
        return self._serving[1]

    def _stop(self) -> None:
        self._serving, self._is_warm = None, False
        self._stack.close()


@contextmanager
def trials_of(pipeline: str, models: Models, repository: Path) -> Iterator[Trials]:
    """On a copy, which no build changes meanwhile."""
    with TemporaryDirectory(prefix="tricade-tune-") as folder:
        try:
            with at_rest(repository):
                copy = variant(repository, Path(folder) / "repository", models=models.names)
        except (CutOff, OSError) as error:
            raise BadPipelineModels(f"{repository} cannot be copied to be tried: {error}") from error
        with Trials(pipeline, copy) as trials:
            yield trials


def _own_names(models: Mapping[str, str], pipeline: str) -> dict[str, str]:
    """As the pipeline file calls them."""
    return {name.removeprefix(f"{pipeline}_"): why for name, why in models.items()}


def _call_at_once(call: Call, pictures: Sequence[bytes], count: int) -> None:
    """So that each instance has been at work."""
    begun = [CREW.submit(partial(timed_call, call, pictures[place % len(pictures)])) for place in range(count)]
    for each in begun:
        each.result()
