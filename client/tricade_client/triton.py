"""gRPC to Triton, blocking and asyncio: the one file that opens connections. The service and its messages are
`tritonclient`'s."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from tritonclient.grpc.service_pb2 import ModelConfigRequest, RepositoryIndexRequest
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from .codec import MAX_MESSAGE_BYTES, Request
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
from .messages import arrays_from_message, message_from_request
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
    """Serves both flavours: an answer is awaited where the service gives an awaitable, else it is there.

    `service` has the methods of `GRPCInferenceService`, `close` closes the channel below it.
    """

    def __init__(self, service: Any, close: Callable[[], Any], url: str) -> None:
        self._service = service
        self._close = close
        self._url = url
        self._closed = False

    async def infer(self, request: Request, context: Context) -> Arrays:
        return arrays_from_message(await self._answer("ModelInfer", message_from_request(request), context))

    async def parameters(self, model: str, context: Context) -> Mapping[str, str]:
        answer = await self._answer("ModelConfig", ModelConfigRequest(name=model), context)
        return {name: value.string_value for name, value in answer.config.parameters.items()}

    async def models(self, context: Context) -> tuple[str, ...]:
        answer = await self._answer("RepositoryIndex", RepositoryIndexRequest(), context)
        return tuple(dict.fromkeys(model.name for model in answer.models))

    async def close(self) -> None:
        self._closed = True
        closing = self._close()
        if inspect.isawaitable(closing):
            await closing

    async def _answer(self, method: str, message: Any, context: Context) -> Any:
        """Call a method of the service; its errors become ours here and nowhere else."""
        timeout_s = context.deadline.left_s()
        try:
            answer = getattr(self._service, method)(message, metadata=tuple(context.headers.items()), timeout=timeout_s)
            return await answer if inspect.isawaitable(answer) else answer
        except grpc.RpcError as error:
            raise self._translated(error, context) from error
        except Exception as error:  # gRPC has errors of its own for a channel closed by another thread or task
            if self._closed:
                raise ClientClosed(_CLOSED) from error
            raise

    def _translated(self, error: Any, context: Context) -> TricadeError:
        if self._closed:
            return ClientClosed(_CLOSED)
        code = error.code().name
        kind = _ERRORS.get(code, ServerFailed)
        said = (error.details() or code).partition("\n")[0]  # a Python backend's traceback follows
        if kind is ServerRefused:
            return ServerRefused(said)
        if kind is Timeout:
            said = f"no answer within {context.deadline.timeout_s:g} s"
        return kind(f"{self._url}: {said}; {_ADVICE[kind]}" if kind in _ADVICE else f"{self._url}: {said}")


def blocking_transport(url: str, tls: Tls | None) -> TritonTransport:
    """One channel, for any number of threads."""
    return _transport(grpc, url, tls)


def asyncio_transport(url: str, tls: Tls | None) -> TritonTransport:
    """One channel, for the event loop that runs now."""
    return _transport(grpc.aio, url, tls)


def checked_url(url: str) -> str:
    """`host:port` of the gRPC endpoint, or `unix:path`."""
    if url.startswith("unix:") or ("://" not in url and url.rpartition(":")[0] and url.rpartition(":")[2].isdigit()):
        return url
    raise BadInput(f"url: expected host:port of the server's gRPC endpoint, like localhost:8001, got {url!r}")


def _transport(flavour: Any, url: str, tls: Tls | None) -> TritonTransport:
    """`flavour` is `grpc` or `grpc.aio`."""
    checked_url(url)
    if tls is None:
        channel = flavour.insecure_channel(url, _CHANNEL)
    else:
        channel = flavour.secure_channel(url, _credentials(tls), _CHANNEL)
    return TritonTransport(GRPCInferenceServiceStub(channel), channel.close, url)


def _credentials(tls: Tls) -> Any:
    files = {name: Path(path) for name, path in vars(tls).items() if path is not None}
    missing = [str(path) for path in files.values() if not path.is_file()]
    if missing:
        raise BadInput(f"tls: expected PEM files, these are none: {', '.join(missing)}")
    return grpc.ssl_channel_credentials(**{name: path.read_bytes() for name, path in files.items()})


_CLOSED = "the client is closed; make a new one, or close it after the last call"
