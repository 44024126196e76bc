"""HTTP to a server of this machine, as fast as the standard library has it: a connection a thread, kept open."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Mapping
from typing import Any

IDLE_S = 1.0  # after a pause a server may have closed it; uvicorn does so after 5 s
Refused = (OSError, http.client.HTTPException)


class Connections:
    """To a port of the loopback address."""

    def __init__(self, port: int, *, timeout_s: float) -> None:
        self._port, self._timeout_s = port, timeout_s
        self._mine = threading.local()

    def ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
        """The answer's body; raises one of `Refused`, also for a status other than 200."""
        connection = self._connection()
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            said = answer.read()
        except BaseException:
            connection.close()
            raise
        if answer.status != 200:
            raise http.client.HTTPException(f"{path} answered {answer.status}: {said[:200]!r}")
        return said

    def answers(self, path: str) -> bool:
        """Whether it does, and with 200."""
        try:
            self.ask("GET", path)
        except Refused:
            return False
        return True

    def _connection(self) -> http.client.HTTPConnection:
        """This thread's; a new one after a pause."""
        mine: dict[str, Any] = self._mine.__dict__
        now = time.monotonic()
        if now - mine.get("used", 0.0) > IDLE_S:
            mine["connection"] = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout_s)
        mine["used"] = now
        connection: http.client.HTTPConnection = mine["connection"]
        return connection
