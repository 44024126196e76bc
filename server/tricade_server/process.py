"""The process `tritonserver`: started with everything spelled out, stopped without a trace."""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tricade.frames import remove_dead_rings

from .errors import LoadFailed, PortTaken
from .installation import Installation
from .log import ServerLog
from .samples import Samples

SHARED_MEMORY = Path("/dev/shm")
# The server refuses clients that register a region of this prefix, so ours begins with it.
REGION_PREFIX = "triton_python_backend_shm_region_"
RESTRICTED = "model-repository,shared-memory,trace,logging"
UNLOAD_TIMEOUT_S = 10
_STUBS = {
    # Stages are single-threaded; their instances are the parallelism.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # glibc gives memory of a picture's size back to the kernel when it is freed, and has every page of the next one
    # zeroed again: preprocessing took twice as long. Kept, it is what the largest picture needs, once.
    "MALLOC_MMAP_THRESHOLD_": str(256 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
}
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Endpoints:
    """Where the server listens."""

    host: str = "127.0.0.1"
    grpc_port: int = 8001
    http_port: int = 8000
    metrics_port: int = 8002

    def __str__(self) -> str:
        ports = {"grpc": self.grpc_port, "http": self.http_port, "metrics": self.metrics_port}
        return ", ".join(f"{name} {self.host}:{port}" for name, port in ports.items())

    def check_free(self) -> None:
        """Raise `PortTaken` for the first port another process has."""
        for name, port in (
            ("grpc", self.grpc_port),
            ("http", self.http_port),
            ("metrics", self.metrics_port),
        ):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((self.host, port))
                except OSError as error:
                    raise PortTaken(
                        f"{name} port {port} on {self.host} is not free ({error.strerror}); choose --{name}-port"
                    ) from error


@dataclass
class TritonProcess:
    """A running server; `admin` is the header value that opens the restricted protocols."""

    process: subprocess.Popen[bytes]
    endpoints: Endpoints
    admin: str
    region_prefix: str
    exit_timeout_s: int
    log: ServerLog
    _stopped: bool = field(default=False, init=False)

    def check_alive(self, *, within_s: float = 0.0) -> None:
        """Raise `LoadFailed` where the server has ended by itself, or does so within that time."""
        with suppress(subprocess.TimeoutExpired):
            code = self.process.wait(within_s)
            self.log.join(5)
            raise LoadFailed(f"tritonserver ended by itself with exit code {code}; its log above says why")

    def stop(self) -> int:
        """Let requests in flight finish, end the server and its stubs, remove their shared memory."""
        if self._stopped:
            return self.process.returncode or 0
        self._stopped = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.log.drained.wait(self.exit_timeout_s + 5)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(UNLOAD_TIMEOUT_S)  # it cannot unload a model whose stub has died
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        _wait_for_group(self.process.pid)  # a ring is known to be dead once its process is
        for region in SHARED_MEMORY.glob(f"{self.region_prefix}*"):
            region.unlink(missing_ok=True)
        remove_dead_rings()
        return code


def start_triton(
    installation: Installation,
    *,
    repository: Path,
    backends: Path,
    endpoints: Endpoints,
    samples: Samples,
    exit_timeout_s: int = 30,
    verbose: bool = False,
) -> TritonProcess:
    """Start the server with no model loaded; it ends when this process does."""
    endpoints.check_free()
    admin = secrets.token_hex(16)
    prefix = f"{REGION_PREFIX}tricade_{os.getpid()}_{secrets.token_hex(3)}_"
    command = [
        str(installation.binary),
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        "--model-control-mode=explicit",
        "--disable-auto-complete-config",
        "--exit-on-error=false",
        f"--exit-timeout-secs={exit_timeout_s}",
        f"--backend-config=python,shm-region-prefix-name={prefix}",
        f"--http-address={endpoints.host}",
        f"--http-port={endpoints.http_port}",
        f"--http-restricted-api={RESTRICTED}:tricade-admin={admin}",
        f"--grpc-address={endpoints.host}",
        f"--grpc-port={endpoints.grpc_port}",
        f"--grpc-restricted-protocol={RESTRICTED}:tricade-admin={admin}",
        f"--metrics-address={endpoints.host}",
        f"--metrics-port={endpoints.metrics_port}",
    ]
    process = subprocess.Popen(
        command,
        env=_environment(installation, samples),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a terminal's Ctrl-C is ours to pass on
        preexec_fn=_end_with_parent,
    )
    assert process.stdout is not None
    log = ServerLog(process.stdout, verbose=verbose)
    log.start()
    return TritonProcess(process, endpoints, admin, prefix, exit_timeout_s, log)


def _wait_for_group(group: int, *, timeout_s: float = 5.0) -> None:
    """Return once no process of the group runs; they were killed, so it takes moments."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and any(_runs_in(group, stat) for stat in Path("/proc").glob("[0-9]*/stat")):
        time.sleep(0.02)


def _runs_in(group: int, stat: Path) -> bool:
    """Whether a process belongs to the group and is not just waiting to be reaped (proc(5): state, ppid, pgrp)."""
    try:
        state, _, of = stat.read_text().rsplit(")", 1)[1].split()[:3]
    except OSError:  # it has ended
        return False
    return int(of) == group and state != "Z"


def _environment(installation: Installation, samples: Samples) -> dict[str, str]:
    """Ours, with the libraries the server needs, this very Python for its stubs, and what they are to keep."""
    environment = dict(os.environ)
    libraries = [str(folder) for folder in installation.libraries]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join([*libraries, *filter(None, [environment.get("LD_LIBRARY_PATH")])])
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    if environment.get("PYTHONHOME") != sys.base_prefix:  # another Python's
        environment.pop("PYTHONHOME", None)
    for name, value in _STUBS.items():
        environment.setdefault(name, value)
    samples.settle(environment)
    return environment


def _end_with_parent() -> None:
    """A server must not outlive a supervisor that was killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
