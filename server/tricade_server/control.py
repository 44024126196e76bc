"""Talking to the server while it starts: the only file here that imports Triton's client."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
from tritonclient import grpc as triton
from tritonclient.utils import InferenceServerException
from typing_extensions import Self

from .errors import LoadFailed
from .process import Endpoints

WARM_UP_TIMEOUT_S = 120.0


class Control:
    """Loads models through the restricted protocol."""

    def __init__(self, endpoints: Endpoints, admin: str) -> None:
        host = "127.0.0.1" if endpoints.host in ("0.0.0.0", "::") else endpoints.host
        self._client: Any = triton.InferenceServerClient(f"{host}:{endpoints.grpc_port}")
        self._headers = {"triton-grpc-protocol-tricade-admin": admin}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def wait_until_live(self, check: Callable[[], None], *, timeout_s: float = 60.0) -> None:
        """Return once the server answers; `check` raises when it has died."""
        end = time.monotonic() + timeout_s
        while not self._is_live():
            check()
            if time.monotonic() > end:
                raise LoadFailed(f"tritonserver did not answer within {timeout_s:.0f} s")
            time.sleep(0.05)

    def load(self, model: str, config: str | None = None) -> None:
        """Load a model, with `config` (JSON) in place of its own; raises `LoadFailed` with the server's reason."""
        try:
            self._client.load_model(model, headers=self._headers, config=config)
        except InferenceServerException as error:
            raise LoadFailed(error.message()) from error

    def warm_up(self, pipeline: str, image: bytes) -> None:
        """One call through the whole pipeline, so that the first user does not wait."""
        encoded = triton.InferInput("IMAGE", [1], "BYTES")
        encoded.set_data_from_numpy(np.array([image], np.object_))
        try:
            self._client.infer(pipeline, [encoded], client_timeout=WARM_UP_TIMEOUT_S)
        except InferenceServerException as error:
            raise LoadFailed(f"{pipeline}: the first call failed: {error.message()}") from error

    def _is_live(self) -> bool:
        try:
            return bool(self._client.is_server_live(client_timeout=2.0))
        except InferenceServerException:
            return False
