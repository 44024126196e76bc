"""`tricade serve`: Triton from the first process to the last region of shared memory."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tricade.frames import remove_dead_rings
from tricade.sampling import Sampling

from .backends import backend_directory, own_folder
from .control import Control
from .installation import find_triton
from .loading import Loader, Say
from .pinned import pinned
from .process import Endpoints, start_triton
from .samples import Samples
from .stubs import StubWatch

CHECK_EVERY_S = 0.25


class _Stop(Exception):
    """A signal asked for the end."""


@contextmanager
def serving(
    repository: Path, endpoints: Endpoints, *, say: Say, verbose: bool = False, sampling: Sampling | None = None
) -> Iterator[StubWatch]:
    """A server with every pipeline of `repository` loaded and warm, stopped on the way out; yields its watch."""
    with own_folder() as folder, pinned(repository, folder / "repository") as models:
        installation = find_triton()
        remove_dead_rings()
        samples = Samples(sampling, folder)
        backends = backend_directory(installation, folder / "backends")
        triton = start_triton(
            installation,
            repository=folder / "repository",
            backends=backends,
            endpoints=endpoints,
            samples=samples,
            verbose=verbose,
        )
        try:
            with Control(endpoints, triton.admin) as control:
                control.wait_until_live(triton.check_alive)
                loader = Loader(control, models, say)
                loader.load_all()
                samples.begin()
                watch = StubWatch(triton, loader.reload, say)
                say(f"{', '.join(model.name for model in models if model.is_ensemble)} ready: {endpoints}")
                yield watch
        finally:
            triton.stop()


def serve(
    repository: Path, endpoints: Endpoints, *, say: Say, verbose: bool = False, sampling: Sampling | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; raises `ServeError` where that cannot be."""
    with _signals_raise():
        try:
            with serving(repository, endpoints, say=say, verbose=verbose, sampling=sampling) as watch:
                while True:
                    watch.check()
                    time.sleep(CHECK_EVERY_S)
        except _Stop:
            say("stopped")


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Turn the first SIGTERM or SIGINT into an exception; further ones do not interrupt the draining."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        raise _Stop

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
