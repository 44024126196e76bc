"""Real servers for tests: `tricade serve` as a process of its own, and what must be gone after it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import processes
from triton_client import PlainTriton

from tricade.frames import remove_dead_rings
from tricade_client import Client
from tricade_tune.host import free_ports

START_TIMEOUT_S = 120
SHARED_MEMORY = Path("/dev/shm")


@dataclass
class Served:
    """A running `tricade serve`."""

    process: subprocess.Popen[str]
    grpc_port: int
    http_port: int
    metrics_port: int
    lines: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"

    def client(self, pipeline: str, **options) -> Client:
        return Client(self.url, pipeline, **options)

    def triton(self) -> PlainTriton:
        return PlainTriton(self.url)

    def http(self, path: str) -> tuple[int, str]:
        """Status and body of a GET."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str, model: str) -> float:
        """A counter of one model, from the metrics port."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        values = [
            line.rsplit(" ", 1)[1] for line in lines if line.startswith(f"{name}{{") and f'model="{model}"' in line
        ]
        return sum(map(float, values))

    def stubs(self, model: str) -> list[int]:
        """The process ids of a model's Python instances."""
        below = processes.descendants(self.process.pid)
        return [pid for pid in below if re.search(rf" {re.escape(model)}_\d", processes.command(pid))]


def regions_of(supervisor: int) -> list[str]:
    """What lies in shared memory for the stubs of one server; other servers of this machine have their own."""
    return [path.name for path in SHARED_MEMORY.iterdir() if f"tricade_{supervisor}_" in path.name]


def left_by(supervisor: int) -> list[str]:
    """What a server that has ended left in shared memory."""
    return regions_of(supervisor) + [path.name for path in remove_dead_rings()]


@contextmanager
def served(repository: Path, *options: str) -> Iterator[Served]:
    """Start `tricade serve`, wait for its ready line, stop it by SIGTERM, check that nothing is left."""
    server = started(repository, *options)
    try:
        wait_until_ready(server)
        yield server
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
        below = processes.descendants(server.process.pid)
        server.process.wait(60)
    assert server.process.returncode == 0, server.lines
    assert [pid for pid in below if processes.alive(pid)] == []
    left = left_by(server.process.pid)
    assert left == []


def started(repository: Path, *options: str) -> Served:
    """The process, its lines collected as they come."""
    grpc_port, http_port, metrics_port = free_ports(3)
    ports = [f"--grpc-port={grpc_port}", f"--http-port={http_port}", f"--metrics-port={metrics_port}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tricade_cli.main", "serve", str(repository), *ports, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    server = Served(process, grpc_port, http_port, metrics_port)
    threading.Thread(target=lambda: server.lines.extend(process.stdout), daemon=True).start()
    return server


def wait_until_ready(server: Served) -> None:
    """Return when it says ready; fail with its lines when it ends or takes too long."""
    processes.wait_for(
        lambda: any(" ready: " in line for line in server.lines) or server.process.poll() is not None,
        timeout_s=START_TIMEOUT_S,
    )
    assert server.process.poll() is None, "".join(server.lines)
