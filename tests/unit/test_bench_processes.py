"""Servers are started, waited for and ended whole, also those that will not."""

from __future__ import annotations

import sys
from pathlib import Path

import processes
import pytest

from bench.connections import Connections, Refused
from bench.processes import ServerFailed, running
from tricade_tune.host import free_ports

# A server with a child in the same session and one that leaves it; `stubborn` ones do not heed SIGTERM.
SERVER = """
import http.server, mmap, os, signal, subprocess, sys
port, stubborn, pids = int(sys.argv[1]), sys.argv[2] == "stubborn", sys.argv[3]
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleeper = ["sleep", "1000"]
memory = open(sys.argv[4], "w+b")
memory.truncate(4096)
mapped = mmap.mmap(memory.fileno(), 4096)
children = [subprocess.Popen(sleeper), subprocess.Popen(sleeper, start_new_session=True)]
open(pids, "w").write(" ".join(str(pid) for pid in (os.getpid(), *(child.pid for child in children))))

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200 if self.path == "/ready" else 500)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers).serve_forever()
"""


@pytest.mark.parametrize("kind", ["obedient", "stubborn"])
def test_nothing_is_left(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.processes.STOP_S", 1.0)
    (port,) = free_ports(1)
    connections = Connections(port, timeout_s=5)
    memory = Path(f"/dev/shm/bench-test-{port}")
    command = [sys.executable, "-c", SERVER, str(port), kind, str(tmp_path / "pids"), str(memory)]

    with running(
        command, environment={}, log=tmp_path / "log", ready=lambda: connections.answers("/ready"), timeout_s=30
    ):
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert all(processes.alive(pid) for pid in pids)
        assert memory.exists()
        assert connections.ask("GET", "/ready") == b"ok"
        with pytest.raises(Refused, match="answered 500"):
            connections.ask("GET", "/other")

    assert [pid for pid in pids if processes.alive(pid)] == []
    assert not memory.exists()
    assert not connections.answers("/ready")


def test_one_that_ends_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; print('no memory'); sys.exit(3)"]

    with (
        pytest.raises(ServerFailed, match=r"ended with exit code 3:\nno memory"),
        running(command, environment={}, log=tmp_path / "log", ready=lambda: False, timeout_s=30),
    ):
        pass


def test_one_that_does_not_get_ready_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"]
    log = tmp_path / "log"

    with (
        pytest.raises(ServerFailed, match="was not ready within 1 s"),
        running(command, environment={}, log=log, ready=lambda: False, timeout_s=1),
    ):
        pass

    assert not processes.alive(int(log.read_text()))


def test_it_is_told_its_environment(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os, time; print(os.environ['MINE'], flush=True); time.sleep(1000)"]
    log = tmp_path / "log"

    with running(command, environment={"MINE": "here"}, log=log, ready=lambda: log.read_text() != "", timeout_s=30):
        assert log.read_text() == "here\n"
