"""`tricade serve`: Triton from the first process to the last region of shared memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tricade.frames import remove_dead_rings
from tricade.sampling import Sampling

from .backends import backend_directory, own_folder
from .control import Control
from .installation import find_triton
from .loading import Loader, Say
from .pinned import pinned
from .process import Endpoints, start_triton
from .samples import Samples
from .signals import interruptible
from .stubs import StubWatch

CHECK_EVERY_S = 0.25


@dataclass(frozen=True)
class Running:
    """A server; `fell_back` are networks that run on ONNX Runtime although they have a plan, and why."""

    watch: StubWatch
    fell_back: Mapping[str, str]


@contextmanager
def serving(
    repository: Path, endpoints: Endpoints, *, say: Say, verbose: bool = False, sampling: Sampling | None = None
) -> Iterator[Running]:
    """A server with every pipeline of `repository` loaded and warm, stopped on the way out."""
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
                yield Running(watch, loader.fell_back)
        finally:
            triton.stop()


def serve(
    repository: Path, endpoints: Endpoints, *, say: Say, verbose: bool = False, sampling: Sampling | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; raises `ServeError` where that cannot be."""
    with interruptible():
        try:
            with serving(repository, endpoints, say=say, verbose=verbose, sampling=sampling) as running:
                while True:
                    running.watch.check()
                    time.sleep(CHECK_EVERY_S)
        except KeyboardInterrupt:
            say("stopped")
