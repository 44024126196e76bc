"""What can go wrong in a call.

TricadeError
├── BadInput          nothing was sent: what was handed in cannot be
│   └── NotAsked      an answer is read that `outputs=` left out
├── TooLarge          a request or an answer is over what gRPC carries
├── ClientClosed      the client was closed before or during the call
├── Unavailable       nobody answers there, or the server is not ready; trying again may help
├── Timeout           no answer in time; the call was cancelled
├── NotFound          the server has no such pipeline
├── ServerRefused     the server says that the request is wrong; `image` is the index of the one at fault
├── ServerFailed      the server broke down over a request that may well be right
└── ResultMismatch    the answer is not what this client understands
"""

from __future__ import annotations


class TricadeError(Exception):
    """Every error of this package; the message says what was expected, what came and what to do."""


class BadInput(TricadeError):
    """What was handed in cannot be sent."""


class NotAsked(BadInput):
    """A part of the answer is read that was not among the outputs asked for."""


class TooLarge(TricadeError):
    """The request, or its answer, is larger than a gRPC message may be."""


class ClientClosed(TricadeError):
    """The client was closed."""


class Unavailable(TricadeError):
    """The server cannot be reached, is not ready, or has too much to do."""


class Timeout(TricadeError):
    """No answer within `timeout_s`."""


class NotFound(TricadeError):
    """The server has no such pipeline."""


class ServerRefused(TricadeError):
    """The server refuses the request; `image` is the index of the image at fault, if it is one."""

    def __init__(self, message: str, *, image: int | None = None) -> None:
        super().__init__(message)
        self.image = image


class ServerFailed(TricadeError):
    """The server failed at the request."""


class ResultMismatch(TricadeError):
    """The answer's tensors are not those of a tricade pipeline."""
