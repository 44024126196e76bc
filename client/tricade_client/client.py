"""`Client` and `AsyncClient`: one pipeline of one server, over one connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from .errors import BadInput, TricadeError
from .images import Encoding, ImageLike
from .options import CallOptions, Settings, options_from
from .pipeline import Pipeline
from .results import Result
from .runtimes import Tasks, Threads, finished, iterated
from .transport import Transport, checked_headers, checked_timeout
from .triton import Tls, asyncio_transport, blocking_transport, checked_url

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Image = TypeVar("Image", bound=ImageLike)
Found = Result | TricadeError


class _Client:
    """What both have in common.

    `timeout_s` and `headers` hold for every call unless it gives its own; `encoding` is how pixels (PIL images,
    arrays) travel; `in_flight` is how many requests of one call are under way at most. `transport` is for tests.
    """

    _opened: Callable[[str, Tls | None], Transport]

    def __init__(
        self,
        url: str = "localhost:8001",
        pipeline: str = "text",
        *,
        timeout_s: float = 30.0,
        headers: Mapping[str, str] | None = None,
        encoding: Literal["lossless", "png", "jpeg"] = "lossless",
        jpeg_quality: int = 90,
        in_flight: int = 8,
        tls: Tls | None = None,
        transport: Transport | None = None,
    ) -> None:
        settings = Settings(
            checked_url(url),
            pipeline,
            checked_timeout(timeout_s),
            checked_headers(headers or {}),
            Encoding(encoding, jpeg_quality),
        )
        opened = partial(type(self)._opened, url, tls) if transport is None else lambda: transport
        self._pipeline = Pipeline(settings, opened)
        self._in_flight = _checked_in_flight(in_flight)


class Client(_Client):
    """Blocking; any number of threads may share one."""

    _opened = staticmethod(blocking_transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, as often as you like; calls in flight raise `ClientClosed`."""
        finished(self._pipeline.close())

    @overload
    def detect(
        self, images: list[ImageLike] | tuple[ImageLike, ...], **options: Unpack[CallOptions]
    ) -> list[Result]: ...
    @overload
    def detect(self, images: list[Image], **options: Unpack[CallOptions]) -> list[Result]: ...
    @overload
    def detect(self, images: ImageLike, **options: Unpack[CallOptions]) -> Result: ...

    def detect(self, images: Any, **options: Unpack[CallOptions]) -> Any:
        """One image to its `Result`, a list to a list; `CallOptions` are the keywords, `TricadeError` is raised."""
        width = self._in_flight
        return finished(self._pipeline.detect(images, options_from(**options), Threads(width), in_flight=width))

    @overload
    def stream(
        self,
        images: Iterable[ImageLike],
        *,
        in_flight: int = 8,
        return_errors: Literal[False] = False,
        **options: Unpack[CallOptions],
    ) -> Generator[Result, None, None]: ...
    @overload
    def stream(
        self,
        images: Iterable[ImageLike],
        *,
        in_flight: int = 8,
        return_errors: Literal[True],
        **options: Unpack[CallOptions],
    ) -> Generator[Found, None, None]: ...

    def stream(
        self,
        images: Iterable[ImageLike],
        *,
        in_flight: int = 8,
        return_errors: bool = False,
        **options: Unpack[CallOptions],
    ) -> Generator[Any, None, None]:
        """Results in the order of the images, read as needed; an error ends it, or comes in its place."""
        width = _checked_in_flight(in_flight)
        checked = options_from(**options)
        return iterated(
            self._pipeline.stream(images, checked, Threads(width), in_flight=width, return_errors=return_errors)
        )


class AsyncClient(_Client):
    """For asyncio; belongs to the event loop of its first call."""

    _opened = staticmethod(asyncio_transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """As `Client.close`."""
        await self._pipeline.close()

    @overload
    async def detect(
        self, images: list[ImageLike] | tuple[ImageLike, ...], **options: Unpack[CallOptions]
    ) -> list[Result]: ...
    @overload
    async def detect(self, images: list[Image], **options: Unpack[CallOptions]) -> list[Result]: ...
    @overload
    async def detect(self, images: ImageLike, **options: Unpack[CallOptions]) -> Result: ...

    async def detect(self, images: Any, **options: Unpack[CallOptions]) -> Any:
        """As `Client.detect`."""
        width = self._in_flight
        return await self._pipeline.detect(images, options_from(**options), Tasks(), in_flight=width)

    @overload
    def stream(
        self,
        images: Iterable[ImageLike] | AsyncIterable[ImageLike],
        *,
        in_flight: int = 8,
        return_errors: Literal[False] = False,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Result, None]: ...
    @overload
    def stream(
        self,
        images: Iterable[ImageLike] | AsyncIterable[ImageLike],
        *,
        in_flight: int = 8,
        return_errors: Literal[True],
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Found, None]: ...

    def stream(
        self,
        images: Iterable[ImageLike] | AsyncIterable[ImageLike],
        *,
        in_flight: int = 8,
        return_errors: bool = False,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Any, None]:
        """As `Client.stream`, an asynchronous generator; takes both kinds of iterable."""
        width = _checked_in_flight(in_flight)
        checked = options_from(**options)
        return self._pipeline.stream(images, checked, Tasks(), in_flight=width, return_errors=return_errors)


def _checked_in_flight(in_flight: int) -> int:
    if in_flight < 1:
        raise BadInput(f"in_flight: expected 1 or more requests at once, got {in_flight}")
    return in_flight
