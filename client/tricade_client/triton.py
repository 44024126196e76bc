"""gRPC to Triton, blocking and asyncio: the one file that knows `tritonclient`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonclient import grpc as blocking
from tritonclient.grpc import aio
from tritonclient.utils import InferenceServerException

from .codec import MAX_MESSAGE_BYTES, Request, Tensor
from .errors import (
    BadInput,
    ClientClosed,
    NotFound,
    ServerFailed,
    ServerRefused,
    Timeout,
    TooLarge,
    TricadeError,
    Unavailable,
)
from .results import Arrays
from .transport import Context

# A client outlives a restart of its server: without the last two gRPC waits up to two minutes between attempts.
_CHANNEL = [
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
]

_ERRORS: dict[str, type[TricadeError]] = {
    "INVALID_ARGUMENT": ServerRefused,
    "UNAUTHENTICATED": ServerRefused,
    "PERMISSION_DENIED": ServerRefused,
    "NOT_FOUND": NotFound,
    "UNAVAILABLE": Unavailable,
    "CANCELLED": Unavailable,
    "DEADLINE_EXCEEDED": Timeout,
    "RESOURCE_EXHAUSTED": TooLarge,
}

_ADVICE: dict[type[TricadeError], str] = {
    Unavailable: "is it there and ready? see: tricade status",
    Timeout: "give more timeout_s, or see what keeps it busy: tricade status",
    TooLarge: "send fewer images at once",
    ServerFailed: "see the server's log",
}


@dataclass(frozen=True)
class Tls:
    """PEM files; without `root_certificates` those of gRPC count."""

    root_certificates: Path | None = None
    private_key: Path | None = None
    certificate_chain: Path | None = None


class TritonTransport:
    """Serves both flavours: an answer is awaited where the client gives an awaitable, else it is there."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url
        self._closed = False

    async def infer(self, request: Request, context: Context) -> Arrays:
        arguments: dict[str, Any] = {"inputs": [_input(tensor) for tensor in request.inputs]}
        if request.outputs:
            arguments["outputs"] = [blocking.InferRequestedOutput(name) for name in request.outputs]
        answer = await self._answer("infer", request.model, context, **arguments)
        names = [output.name for output in answer.get_response().outputs]
        return {name: answer.as_numpy(name) for name in names}

    async def parameters(self, model: str, context: Context) -> Mapping[str, str]:
        answer = await self._answer("get_model_config", model, context)
        return {name: value.string_value for name, value in answer.config.parameters.items()}

    async def models(self, context: Context) -> tuple[str, ...]:
        answer = await self._answer("get_model_repository_index", None, context)
        return tuple(dict.fromkeys(model.name for model in answer.models))

    async def close(self) -> None:
        self._closed = True
        closing = self._client.close()
        if inspect.isawaitable(closing):
            await closing

    async def _answer(self, method: str, model: str | None, context: Context, **arguments: Any) -> Any:
        """Call a method of the client; its errors become ours here and nowhere else."""
        names = () if model is None else (model,)
        call = getattr(self._client, method)
        timeout_s = context.deadline.left_s()
        try:
            answer = call(*names, headers=dict(context.headers), client_timeout=timeout_s, **arguments)
            return await answer if inspect.isawaitable(answer) else answer
        except InferenceServerException as error:
            raise self._translated(error, context) from error
        except Exception as error:  # gRPC has errors of its own for a channel closed by another thread or task
            if self._closed:
                raise ClientClosed(_CLOSED) from error
            raise

    def _translated(self, error: InferenceServerException, context: Context) -> TricadeError:
        if self._closed:
            return ClientClosed(_CLOSED)
        code = (error.status() or "").removeprefix("StatusCode.")
        kind = _ERRORS.get(code, ServerFailed)
        said = (error.message() or code).partition("\n")[0]  # a Python backend's traceback follows
        if kind is ServerRefused:
            return ServerRefused(said)
        if kind is Timeout:
            said = f"no answer within {context.deadline.timeout_s:g} s"
        return kind(f"{self._url}: {said}; {_ADVICE[kind]}" if kind in _ADVICE else f"{self._url}: {said}")


def blocking_transport(url: str, tls: Tls | None) -> TritonTransport:
    """One channel, for any number of threads."""
    return TritonTransport(blocking.InferenceServerClient(url, **_channel(url, tls)), url)


def asyncio_transport(url: str, tls: Tls | None) -> TritonTransport:
    """One channel, for the event loop that runs now."""
    return TritonTransport(aio.InferenceServerClient(url, **_channel(url, tls)), url)


def checked_url(url: str) -> str:
    """`host:port` of the gRPC endpoint, or `unix:path`."""
    if url.startswith("unix:") or ("://" not in url and url.rpartition(":")[0] and url.rpartition(":")[2].isdigit()):
        return url
    raise BadInput(f"url: expected host:port of the server's gRPC endpoint, like localhost:8001, got {url!r}")


def _channel(url: str, tls: Tls | None) -> dict[str, Any]:
    checked_url(url)
    if tls is None:
        return {"channel_args": _CHANNEL}
    files = {name: None if path is None else str(path) for name, path in vars(tls).items()}
    missing = [path for path in files.values() if path is not None and not Path(path).is_file()]
    if missing:
        raise BadInput(f"tls: expected PEM files, these are none: {', '.join(missing)}")
    return {"channel_args": _CHANNEL, "ssl": True, **files}


def _input(tensor: Tensor) -> blocking.InferInput:
    made = blocking.InferInput(tensor.name, list(tensor.data.shape), tensor.dtype)
    return made.set_data_from_numpy(tensor.data)


_CLOSED = "the client is closed; make a new one, or close it after the last call"
