"""What can go wrong in a stage.

StageError                  answered to one request; `triton_code` is its code on the wire
├── BadRequest              the request itself is wrong
│   └── BadImage            one of its images is; the message begins with the image's index
├── FrameLost               the decoded picture is no longer in the frame store
└── NetworkFailed           another model, called by a stage, failed
BadSettings                 stops a model at load
└── EngineMisfit            an engine that this machine cannot run
CutOff                      a repository between two builds
"""

from __future__ import annotations


class StageError(Exception):
    """Answered to one request, never to its neighbours."""

    triton_code = "INTERNAL"


class BadRequest(StageError):
    """The request is not what the pipeline takes."""

    triton_code = "INVALID_ARG"


class BadImage(BadRequest):
    """An image that is too large or that cannot be decoded."""

    def at(self, index: int) -> BadImage:
        """The same error, saying which image of the request it is."""
        return BadImage(f"image {index}: {self}")


class FrameLost(StageError):
    """The picture's place in the frame store was given to another one, or its ring is gone."""

    triton_code = "UNAVAILABLE"


class NetworkFailed(StageError):
    """A model that a stage called did not answer; carries that model's code."""

    def __init__(self, message: str, *, triton_code: str) -> None:
        super().__init__(message)
        self.triton_code = triton_code


class BadSettings(Exception):
    """A model's parameters are incomplete, unknown or wrong."""


class EngineMisfit(BadSettings):
    """An engine that does not fit this machine or its own configuration."""


class CutOff(Exception):
    """A build has been published and is not all in place; nothing may be read there before it is."""
