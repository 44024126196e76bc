"""The calls of one pipeline, written once for both clients: coroutines that suspend only where their transport does."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from .codec import Request, request_from_images, results_from_arrays
from .errors import BadInput, ClientClosed, NotFound, ServerRefused, TricadeError, Unavailable
from .images import ImageLike, Picture, encoded, picture_from
from .options import Options, Settings
from .results import Result
from .runtimes import Runtime, each, in_order
from .transport import Context, Deadline, Transport

# How the server names an image at fault; the rest of a request is refused with it.
_IMAGE = re.compile(r"\bimage (\d+)(?=: )")


class Pipeline:
    """Opens its transport with the first call, and holds that one until it is closed."""

    def __init__(self, settings: Settings, opened: Callable[[], Transport]) -> None:
        self.settings = settings
        self._opened = opened
        self._transport: Transport | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._max_images: int | None = None

    async def detect(
        self, images: ImageLike | list[Any] | tuple[Any, ...], options: Options, runtime: Runtime, *, in_flight: int
    ) -> Result | list[Result]:
        """One image to one `Result`; a list to a list, in requests of as many as the server takes."""
        context = self._context(options)
        if not isinstance(images, (list, tuple)):
            picture = await runtime.work(partial(picture_from, images))
            return (await self._ask([picture], options=options, context=context, runtime=runtime))[0]
        pictures = [await runtime.work(partial(picture_from, image, index)) for index, image in enumerate(images)]
        limit = await self._limit(context) if len(images) > 1 else None
        size = limit or max(1, len(images))
        batches = [pictures[start : start + size] for start in range(0, len(pictures), size)]
        call = partial(self._ask, options=options, context=context, runtime=runtime)
        answers = in_order(each(batches), call, runtime, in_flight=in_flight)
        return [result async for results in answers for result in results]

    async def stream(
        self,
        images: Iterable[ImageLike] | AsyncIterable[ImageLike],
        options: Options,
        runtime: Runtime,
        *,
        in_flight: int,
        return_errors: bool,
    ) -> AsyncGenerator[Result | TricadeError, None]:
        """A request for each image, answers in their order; each has its own deadline."""

        async def call(picture: Picture | BadInput) -> Result | TricadeError:
            try:
                if isinstance(picture, BadInput):
                    raise picture
                return (await self._ask([picture], options=options, context=self._context(options), runtime=runtime))[0]
            except TricadeError as error:
                if return_errors:
                    return error
                raise

        answers = in_order(_kept(images, runtime), call, runtime, in_flight=in_flight)
        try:
            async for answer in answers:
                yield answer
        finally:
            await answers.aclose()

    async def close(self) -> None:
        """Idempotent."""
        with self._lock:
            transport, self._transport, self._closed = self._transport, None, True
        if transport is not None:
            await transport.close()

    async def _ask(
        self, pictures: Sequence[Picture], *, options: Options, context: Context, runtime: Runtime
    ) -> list[Result]:
        """One request."""
        request = await runtime.work(partial(self._request, pictures, options))
        try:
            arrays = await self._open().infer(request, context)
        except ServerRefused as error:
            self._max_images = None  # it may have been lowered meanwhile
            raise _placed(error, pictures) from error.__cause__
        except (NotFound, Unavailable) as error:
            if "unknown model" not in str(error).lower():
                raise
            raise await self._explained(error, context) from error.__cause__
        return results_from_arrays(arrays, images=len(pictures))

    def _request(self, pictures: Sequence[Picture], options: Options) -> Request:
        images = [encoded(picture, self.settings.encoding) for picture in pictures]
        return request_from_images(self.settings.pipeline, images, threshold=options.threshold, outputs=options.outputs)

    async def _limit(self, context: Context) -> int | None:
        """Images a request may hold; None where the server does not tell: its own answer then says what is wrong."""
        if self._max_images is None:
            with suppress(NotFound, Unavailable, ServerRefused, ValueError, KeyError):
                parameters = await self._open().parameters(f"{self.settings.pipeline}_preprocess", context)
                self._max_images = max(1, int(parameters["max_images"]))
        return self._max_images

    async def _explained(self, error: TricadeError, context: Context) -> TricadeError:
        """Why the server does not know the model, with the pipelines that are there."""
        said = f"{self.settings.url}: no pipeline {self.settings.pipeline!r} is ready there"
        try:
            names = await self._open().models(context)
        except TricadeError:  # listing models may be forbidden, and a server that stops lists none
            stopping = isinstance(error, Unavailable) or "no available versions" in str(error)
            return (Unavailable if stopping else NotFound)(f"{said}; see which there are: tricade status")
        there = sorted(name for name in names if f"{name}_preprocess" in names)
        if self.settings.pipeline in there:
            return Unavailable(f"{said}, though the server has it; see why: tricade status")
        return NotFound(f"{said}; it has {', '.join(there) or 'none'}; name one of these")

    def _context(self, options: Options) -> Context:
        timeout_s = self.settings.timeout_s if options.timeout_s is None else options.timeout_s
        return Context({**self.settings.headers, **options.headers}, Deadline(timeout_s))

    def _open(self) -> Transport:
        with self._lock:
            if self._closed:
                raise ClientClosed("the client is closed; make a new one, or close it after the last call")
            if self._transport is None:
                self._transport = self._opened()
            return self._transport


async def _kept(
    images: Iterable[ImageLike] | AsyncIterable[ImageLike], runtime: Runtime
) -> AsyncIterator[Picture | BadInput]:
    """Pictures the caller can no longer change; what cannot be one as an error in its place."""
    async for image in each(images):
        try:
            yield await runtime.work(lambda image=image: picture_from(image).kept())  # type: ignore[misc]
        except BadInput as error:
            yield error


def _placed(error: ServerRefused, pictures: Sequence[Picture]) -> ServerRefused:
    """The server's message with the caller's index and file name for the index within the request."""
    named = _IMAGE.search(str(error))
    if named is None or int(named[1]) >= len(pictures):
        return error
    picture = pictures[int(named[1])]
    return ServerRefused(str(error)[named.start() :].replace(named[0], picture.name, 1), image=picture.index or 0)
