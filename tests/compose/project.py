"""A Compose project of its own on the engine here: `Project`, with free ports and a name nobody else has."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tricade_tune.host import free_ports

ROOT = Path(__file__).parents[2]


def run(*command: str, timeout_s: float = 60, environment: dict[str, str] | None = None) -> str:
    """What `command` prints; an AssertionError with all it said where it fails."""
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, timeout=timeout_s, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@cache
def compose_command() -> tuple[str, ...]:
    """The plugin where the engine's client has it, else the stand-alone program."""
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return ("docker", "compose") if plugin.returncode == 0 else ("docker-compose",)


@dataclass(frozen=True)
class Project:
    """compose.yaml under one profile, as a user starts it."""

    profile: str
    environment: Mapping[str, str] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"tricade-test-{uuid.uuid4().hex[:8]}")
    ports: tuple[int, int, int] = field(default_factory=lambda: tuple(free_ports(3)))  # type: ignore[arg-type]

    def compose(self, *arguments: str, timeout_s: float = 120) -> str:
        environment = dict(
            zip(("TRICADE_GRPC_PORT", "TRICADE_HTTP_PORT", "TRICADE_METRICS_PORT"), map(str, self.ports), strict=True)
        )
        environment |= {**self.environment, "COMPOSE_PROJECT_NAME": self.name}
        return run(
            *compose_command(), "--profile", self.profile, *arguments, timeout_s=timeout_s, environment=environment
        )

    def container(self, service: str) -> str:
        """The id of the service's one container, running or not."""
        kept = ("--filter", f"label=com.docker.compose.project={self.name}")
        return run("docker", "ps", "-aq", *kept, "--filter", f"label=com.docker.compose.service={service}").strip()

    def inspect(self, service: str) -> dict[str, Any]:
        (details,) = json.loads(run("docker", "inspect", self.container(service)))
        return dict(details)

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """`script` inside of the serving container, as its user."""
        command = ["docker", "exec", self.container("serve"), "sh", "-c", script]
        return subprocess.run(command, timeout=60, capture_output=True, text=True, check=False)

    def await_health(self, *, since: float, timeout_s: int) -> None:
        """Wait for the engine to say that the serving container became healthy after `since`, seconds since 1970."""
        filters = [f"container={self.container('serve')}", "event=health_status", "event=die"]
        events = subprocess.Popen(
            ["docker", "events", "--since", f"{since:.3f}", "--until", str(int(time.time()) + timeout_s)]
            + [part for one in filters for part in ("--filter", one)]
            + ["--format", "{{.Status}}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        with events:
            assert events.stdout is not None
            last = next(
                (line for line in map(str.strip, events.stdout) if line == "die" or line.endswith(" healthy")),
                "nothing",
            )
            events.terminate()
        assert last.endswith(" healthy"), f"not healthy, but {last}\n{self.compose('logs', '--no-color')}"

    def remains(self) -> list[str]:
        """The containers, volumes and networks that the engine still has of this project."""
        of_it = ("-q", "--filter", f"label=com.docker.compose.project={self.name}")
        kinds = (("ps", "-a"), ("volume", "ls"), ("network", "ls"))
        return [line for kind in kinds for line in run("docker", *kind, *of_it).splitlines()]
