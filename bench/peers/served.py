"""Contestants behind a server of their own: started in `.venv-peers`, asked over loopback."""

from __future__ import annotations

import json
import os
import secrets
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient import grpc as triton
from tritonclient.utils import InferenceServerException

from .. import ROOT
from ..answers import Answer, answer_from
from ..connections import Connections
from ..load import Call
from ..processes import ServerFailed, running
from .pipeline import Place

BIN = ROOT / ".venv-peers" / "bin"
START_S, CALL_S = 120.0, 120.0
STARTS = 3  # pytriton's processes now and then miss each other at the start when the machine is busy
Form = Callable[[bytes], tuple[bytes, Mapping[str, str]]]  # a picture to a request's body and headers


def whole(picture: bytes) -> tuple[bytes, Mapping[str, str]]:
    """The picture as the whole body."""
    return picture, {"Content-Type": "application/octet-stream"}


def multipart(picture: bytes) -> tuple[bytes, Mapping[str, str]]:
    """The picture as a form's file `picture` (RFC 7578)."""
    boundary = secrets.token_hex(16)
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="picture"; filename="picture"\r\n\r\n'
    body = head.encode() + picture + f"\r\n--{boundary}--\r\n".encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={boundary}"}


@dataclass(frozen=True)
class Peer:
    """How one is started, and where and in which form it takes pictures; without `path` it speaks Triton's gRPC."""

    command: str  # {port} and {workers} are filled in
    path: str = ""
    ready: str = ""
    form: Form = whole
    environment: Mapping[str, str] = field(default_factory=dict)


PEERS: Mapping[str, Peer] = {
    "fastapi": Peer(
        "uvicorn bench.peers.fastapi:app --host=127.0.0.1 --port={port} --workers={workers} --no-access-log",
        path="/detect",
        ready="/ready",
    ),
    "litserve": Peer("python -m bench.peers.litserve", path="/predict", ready="/health", form=multipart),
    "bentoml": Peer(
        "bentoml serve bench.peers.bentoml:Detect --host=127.0.0.1 --port={port}",
        path="/detect",
        ready="/readyz",
        environment={"BENTOML_DO_NOT_TRACK": "True"},
    ),
    "mosec": Peer(
        "python -m bench.peers.mosec --address=127.0.0.1 --port={port} --timeout=120000 --log-level=warning",
        path="/inference",
        ready="/",
    ),
    "pytriton": Peer("python -m bench.peers.pytriton"),
}


class Served:
    """A contestant: the peer runs while it is entered. Entering raises `ServerFailed`."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self._peer, self._place = PEERS[name], place
        self._stack = ExitStack()

    def __enter__(self) -> Call:
        for _ in range(STARTS - 1):
            try:
                return self._start()
            except ServerFailed:
                continue
        return self._start()

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _start(self) -> Call:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"bench-{self.name}-")))
            call, ready = self._over_http() if self._peer.path else self._over_grpc(stack)
            program, *arguments = self._peer.command.format(**vars(self._place)).split()
            stack.enter_context(
                running(
                    [str(BIN / program), *arguments],
                    environment=self._environment(folder),
                    log=folder / "log",
                    ready=ready,
                    timeout_s=START_S,
                )
            )
            self._stack = stack.pop_all()
        return call

    def _environment(self, folder: Path) -> dict[str, str]:
        """What it serves, and a home for what it keeps."""
        homes = dict.fromkeys(("TMPDIR", "HOME", "BENTOML_HOME", "XDG_CACHE_HOME"), str(folder))
        paths = {
            "PATH": f"{BIN}:/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            # pytriton's stub must find the shared library of this very Python, not the system's.
            "LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR") or "",
        }
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # as in tricade's stages
        return {**homes, **paths, **threads, **self._place.environment(), **self._peer.environment}

    def _over_http(self) -> tuple[Call, Callable[[], bool]]:
        connections = Connections(self._place.port, timeout_s=CALL_S)

        def call(picture: bytes) -> Answer:
            body, headers = self._peer.form(picture)
            return answer_from(json.loads(connections.ask("POST", self._peer.path, body, headers)))

        return call, lambda: connections.answers(self._peer.ready)

    def _over_grpc(self, stack: ExitStack) -> tuple[Call, Callable[[], bool]]:
        client = stack.enter_context(triton.InferenceServerClient(f"127.0.0.1:{self._place.port}"))

        def call(picture: bytes) -> Answer:
            image = triton.InferInput("IMAGE", [1], "BYTES").set_data_from_numpy(np.array([picture], np.object_))
            answer = client.infer(self._place.pipeline, [image], client_timeout=CALL_S)
            names = [output.name for output in answer.get_response().outputs]
            return answer_from({name: answer.as_numpy(name) for name in names})

        return call, lambda: _is_ready(client, self._place.pipeline)


def _is_ready(client: Any, model: str) -> bool:
    try:
        return bool(client.is_model_ready(model, client_timeout=5.0))
    except InferenceServerException:
        return False
