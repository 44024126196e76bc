"""The client of tricade: one call to a vision cascade served by Triton.

with Client("localhost:8001", pipeline="text") as client:
    for found in client.detect("receipt.jpg"):
        print(found.label, found.score, found.box, found.classes["text"].label)
"""

from .client import AsyncClient, Client
from .errors import (
    BadInput,
    ClientClosed,
    NotAsked,
    NotFound,
    ResultMismatch,
    ServerFailed,
    ServerRefused,
    Timeout,
    TooLarge,
    TricadeError,
    Unavailable,
)
from .images import ImageLike
from .results import Classification, Detection, Result
from .triton import Tls

__all__ = [
    "AsyncClient",
    "BadInput",
    "Classification",
    "Client",
    "ClientClosed",
    "Detection",
    "ImageLike",
    "NotAsked",
    "NotFound",
    "Result",
    "ResultMismatch",
    "ServerFailed",
    "ServerRefused",
    "Timeout",
    "Tls",
    "TooLarge",
    "TricadeError",
    "Unavailable",
]
