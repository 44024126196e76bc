"""TensorRT's log, for whoever has to say why it refused something: the build that compiles, the network that runs."""

from __future__ import annotations

from collections import deque
from typing import Any

LINES_TOLD = 3  # in an error: a cause and what followed from it


def log_class(trt: Any) -> Any:
    """A logger class for the module `trt` (tensorrt or tensorrt_rtx)."""

    class Log(trt.ILogger):  # type: ignore[misc]
        """Keeps the last errors until they are told."""

        def __init__(self) -> None:
            super().__init__()
            self.errors: deque[str] = deque(maxlen=LINES_TOLD)

        def log(self, severity: Any, message: str) -> None:
            if severity.name in ("ERROR", "INTERNAL_ERROR"):
                self.errors.append(" ".join(message.split()))

        def told(self) -> str:
            told = "; ".join(self.errors) or "without a word in its log"
            self.errors.clear()
            return told

    return Log
