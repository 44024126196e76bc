"""compose.yaml on a real engine: it serves, it is confined, it stops, and it leaves nothing behind."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
import skimage
import yaml
from compose.project import Project

from tricade_client import Client

GRACE_S = 45
FLOOR = (26, 7)  # security bulletins of 2026
GPU_SERVICES = {"prepare-gpu": "gpu", "serve-gpu": "gpu", "build-gpu": "build-gpu"}


@pytest.fixture(scope="module")
def served() -> Iterator[Project]:
    """The profile `cpu`, up and healthy."""
    project = Project("cpu")
    try:
        project.compose("build", timeout_s=900)
        began = time.time()
        project.compose("up", "-d", timeout_s=600)
        project.await_health(since=began, timeout_s=300)
        yield project
    finally:
        project.compose("down", "-v", "-t", "5")


def of_profile(profile: str) -> dict[str, Any]:
    """What Compose makes of a profile: its services."""
    return dict(yaml.safe_load(Project(profile).compose("config"))["services"])


@pytest.fixture(scope="module", params=["", "-gpu"])
def services(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The three services without a GPU, or with one."""
    suffix = request.param
    found = of_profile(suffix.removeprefix("-") or "cpu") | of_profile(f"build{suffix}")
    return {name: found[f"{name}{suffix}"] for name in ("prepare", "serve", "build")}


def test_finds_words_from_the_host(served: Project) -> None:
    with Client(f"localhost:{served.ports[0]}", pipeline="text") as client:
        found = " ".join(one.classes["text"].label for one in client.detect(f"{skimage.data_dir}/page.png"))
    assert {"segmentation", "determine", "background", "histogram"} <= set(re.findall("[a-z]+", found.lower())), found


def test_is_confined(served: Project) -> None:
    assert served.shell("id -u").stdout.strip() not in ("", "0")
    status = served.shell("cat /proc/1/status").stdout
    assert re.search(r"^CapBnd:\s0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s1$", status, re.MULTILINE)
    for path in ("/models/x", "/models/text/config.pbtxt", "/opt/tricade/x", "/x"):
        assert "Read-only file system" in served.shell(f"touch {path}").stderr, path
    assert served.shell("touch /tmp/x").returncode == 0


def test_reports_to_nobody(served: Project) -> None:
    assert ".cache" not in served.shell("ls -A /tmp").stdout, "ONNX Runtime's telemetry keeps its database there"


def test_is_reached_from_this_host_alone(served: Project) -> None:
    published = served.inspect("serve")["NetworkSettings"]["Ports"]
    assert {one["HostIp"] for port in published.values() for one in port or ()} == {"127.0.0.1"}


@pytest.mark.parametrize("path", ["repository/models/text/unload", "systemsharedmemory/region/x/register"])
def test_refuses_control_by_whoever_reaches_a_port(served: Project, path: str) -> None:
    triton = HTTPConnection("127.0.0.1", served.ports[1], timeout=10)
    triton.request("POST", f"/v2/{path}", body="{}")
    assert triton.getresponse().status == 403


def test_stops_in_time_and_starts_again_at_once(served: Project) -> None:
    began = time.time()
    served.compose("stop")
    state = served.inspect("serve")["State"]
    assert time.time() - began < GRACE_S
    assert (state["ExitCode"], state["OOMKilled"]) == (0, False)

    began = time.time()
    served.compose("up", "-d")
    served.await_health(since=began, timeout_s=60)
    assert served.inspect("prepare")["State"]["ExitCode"] == 0


def test_down_leaves_nothing(served: Project) -> None:
    assert served.remains()
    served.compose("down", "-v")
    assert served.remains() == []


def test_gpu_profiles_reserve_one_and_start_from_the_floor() -> None:
    images = {"prepare-gpu": "tricade:build-gpu", "serve-gpu": "tricade:gpu", "build-gpu": "tricade:build-gpu"}
    services = {name: of_profile(profile)[name] for name, profile in GPU_SERVICES.items()}
    for name, service in services.items():
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert (device["driver"], device["count"], device["capabilities"]) == ("nvidia", 1, ["gpu"])
        assert service["image"] == images[name]
        release = re.fullmatch(r".*/tritonserver:(\d+)\.(\d+)-py3", service["build"]["args"]["BASE_IMAGE"])
        assert release is not None, name
        assert tuple(map(int, release.groups())) >= FLOOR
    assert {name: service["build"]["target"] for name, service in services.items()} == {
        "prepare-gpu": "build", "serve-gpu": "serve", "build-gpu": "build",
    }  # fmt: skip


def test_all_profiles_are_confined_alike(services: dict[str, Any]) -> None:
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not {"ipc", "privileged", "pid", "cap_add", "user"} & service.keys()
    assert services["prepare"]["network_mode"] == services["build"]["network_mode"] == "none"
    assert "poll" not in str(services)
    assert services["serve"]["depends_on"].popitem()[1]["condition"] == "service_completed_successfully"
