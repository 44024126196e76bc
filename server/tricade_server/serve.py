"""`tricade serve`: Triton from the first process to the last region of shared memory."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tricade.frames import remove_dead_rings

from .backends import backend_directory
from .control import Control
from .installation import find_triton
from .loading import Say, load_all
from .process import Endpoints, TritonProcess, start_triton
from .repository import read_repository


class _Stop(Exception):
    """A signal asked for the end."""


@contextmanager
def serving(repository: Path, endpoints: Endpoints, *, say: Say, verbose: bool = False) -> Iterator[TritonProcess]:
    """A server with every pipeline of `repository` loaded and warm; stopped on the way out."""
    models = read_repository(repository)
    installation = find_triton()
    remove_dead_rings()
    with tempfile.TemporaryDirectory(prefix="tricade-") as folder:
        backends = backend_directory(installation, Path(folder) / "backends")
        triton = start_triton(
            installation,
            repository=repository.resolve(),
            backends=backends,
            endpoints=endpoints,
            verbose=verbose,
        )
        try:
            with Control(endpoints, triton.admin) as control:
                control.wait_until_live(triton.check_alive)
                load_all(control, models, say)
            names = ", ".join(model.name for model in models if model.is_ensemble)
            say(
                f"{names} ready: grpc {endpoints.host}:{endpoints.grpc_port}, "
                f"http {endpoints.host}:{endpoints.http_port}, metrics {endpoints.host}:{endpoints.metrics_port}"
            )
            yield triton
        finally:
            triton.stop()


def serve(repository: Path, endpoints: Endpoints, *, say: Say, verbose: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, then drain; raises `ServeError` where that cannot be."""
    with _signals_raise():
        try:
            with serving(repository, endpoints, say=say, verbose=verbose) as triton:
                while True:
                    triton.process.wait()
                    triton.check_alive()
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
