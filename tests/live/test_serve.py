"""`tricade serve` as a process: what it says, what it survives, what it leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path

import cascade
import live_pipelines
import numpy as np
import onnx
import processes
import pytest
import running
from tritonclient.utils import InferenceServerException

from tricade.publishing import JOURNAL
from tricade.versions import versions
from tricade_build.build import build
from tricade_client import TricadeError

OBJECTS = cascade.objects(4)
PICTURE = cascade.picture(OBJECTS)
# What is wrong with a plan that a stranger put there: it has no record, or another one's.
UNKNOWN_PLAN = (
    "manifest.json does not say what model.plan was built for"
    if live_pipelines.TARGET == "onnxruntime"
    else "model.plan is damaged or was replaced"
)


@pytest.fixture
def copied(squares_repository, tmp_path) -> Path:
    """A repository of one's own, to be damaged."""
    return Path(shutil.copytree(squares_repository, tmp_path / "repository"))


def ended(server: running.Served) -> tuple[int, str]:
    """Exit code and last line of one that should not have started."""
    code = server.process.wait(60)
    processes.wait_for(lambda: server.lines)
    return code, server.lines[-1].strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_a_trace(squares_repository, number):
    server = running.started(squares_repository)
    running.wait_until_ready(server)
    below = processes.descendants(server.process.pid)
    assert running.regions_of(server.process.pid)
    server.process.send_signal(number)
    assert server.process.wait(30) == 0
    assert server.lines[-1] == "tricade: stopped\n"
    assert [pid for pid in below if processes.alive(pid)] == []
    assert running.left_by(server.process.pid) == []
    for port in (server.grpc_port, server.http_port, server.metrics_port):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_killed_supervisor_takes_the_server_with_it(squares_repository):
    server = running.started(squares_repository)
    running.wait_until_ready(server)
    below = processes.descendants(server.process.pid)
    server.process.kill()
    server.process.wait()
    processes.wait_for(lambda: not any(processes.alive(pid) for pid in below), timeout_s=60)
    assert running.left_by(server.process.pid) == []


def test_calls_in_flight_are_answered_before_the_end(squares_repository):
    server = running.started(squares_repository)
    running.wait_until_ready(server)
    answers: list[int | TricadeError] = []

    def ask() -> None:
        with server.client("squares") as client:
            while True:
                try:
                    answers.append(len(client.detect([PICTURE] * 8)[0]))
                except TricadeError as error:
                    answers.append(error)
                    return

    callers = [threading.Thread(target=ask) for _ in range(4)]
    for caller in callers:
        caller.start()
    processes.wait_for(lambda: len(answers) > 20)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(40) == 0
    for caller in callers:
        caller.join()
    refused = [answer for answer in answers if isinstance(answer, TricadeError)]
    assert len(refused) == 4
    assert {type(error).__name__ for error in refused} == {"Unavailable"}
    assert {answer for answer in answers if not isinstance(answer, TricadeError)} == {4}


def test_a_taken_port_is_named_before_anything_starts(squares_repository):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, line = ended(running.started(squares_repository, f"--http-port={port}"))
    assert code == 1
    assert line == f"tricade: http port {port} on 127.0.0.1 is not free (Address already in use); choose --http-port"


@pytest.mark.parametrize("number", [15, 9])
def test_a_server_that_ends_by_itself_is_an_error(squares_repository, number):
    server = running.started(squares_repository)
    running.wait_until_ready(server)
    (triton,) = [
        pid for pid in processes.descendants(server.process.pid) if "/bin/tritonserver " in processes.command(pid)
    ]
    os.kill(triton, number)
    assert server.process.wait(60) == 1
    assert "tritonserver ended by itself" in server.lines[-1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "nowhere", "nowhere is not a folder; run: tricade build PIPELINE"),
        (lambda folder: folder, "holds no pipeline; run: tricade build PIPELINE"),
    ],
)
def test_a_folder_that_is_no_repository(tmp_path, make, message):
    code, line = ended(running.started(make(tmp_path)))
    assert code == 1
    assert message in line


def test_a_broken_configuration_is_named(copied):
    (copied / "squares_crop" / "config.pbtxt").write_text("name: squares_crop\nbackend")
    code, line = ended(running.started(copied))
    assert code == 1
    assert "squares_crop/config.pbtxt is not a model configuration" in line


def test_a_wrong_setting_stops_the_start_and_says_what_is_wrong(copied):
    config = copied / "squares_crop" / "config.pbtxt"
    config.write_text(config.read_text().replace('key: "iou"', 'key: "iuo"'))
    server = running.started(copied)
    code = server.process.wait(60)
    assert code == 1
    assert "squares_crop cannot be loaded" in "".join(server.lines)
    assert "squares_crop: unknown parameter 'iuo'; known are iou" in "".join(server.lines)


def test_a_plan_that_does_not_load_falls_back_and_says_why(copied):
    (copied / "squares_colour" / "1" / "model.plan").write_bytes(b"not a plan")
    with running.served(copied) as server:
        (line,) = [line for line in server.lines if line.startswith("tricade: squares_colour runs on ONNX Runtime: ")]
        assert UNKNOWN_PLAN in line
        assert len(server.client("squares").detect(PICTURE)) == 4
        assert server.http("/v2/models/squares_colour/ready")[0] == 200
        assert "failed to load" not in "".join(server.lines)  # Triton did not try the plan after all


def build_shifted(folder: Path, repository: Path, by: int) -> list[str]:
    """Build with a network that takes each colour for another one, and other names; returns the answers to come."""
    colours = list(cascade.COLOURS)
    keys = {"labels": [f"{colour} {by}" for colour in colours], "max_batch": 8 + by}
    path = live_pipelines.write_squares(folder, colour=keys)
    model = cascade.colour_model()
    for tensor in model.graph.initializer:
        values = np.roll(onnx.numpy_helper.to_array(tensor), by, axis=-1)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    onnx.save(model, folder / "colour.onnx")
    assert build(path, repository=repository, target=live_pipelines.TARGET).built == ("squares_colour",)
    found = cascade.expected(OBJECTS).colours
    return [f"{colours[(colours.index(colour) + by) % len(colours)]} {by}" for colour in found]


def colours_of(server: running.Served) -> list[str]:
    """Several times the same, so that each instance has answered; nothing while one is loaded again."""
    with server.client("squares", timeout_s=10) as client:
        try:
            answers = [[found.classes["colour"].label for found in client.detect(PICTURE)] for _ in range(6)]
        except TricadeError:
            return []
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def test_what_is_built_meanwhile_is_served_after_a_restart(copied, tmp_path):
    """Neither networks nor labels change under a server, even where it has to load them again."""
    repository = copied
    old = list(cascade.expected(OBJECTS).colours)
    with running.served(repository) as server:
        assert colours_of(server) == old
        for by in (1, 2, 3):
            new = build_shifted(tmp_path / str(by), repository, by)
        for model in ("squares_colour", "squares_label", "squares_crop"):
            os.kill(server.stubs(model)[0], signal.SIGKILL)
            processes.wait_for(
                lambda m=model: f"tricade: {m}: a process of it has died; it is loaded again\n" in server.lines
            )
            answers: list[str] = []
            processes.wait_for(lambda found=answers: found.extend(colours_of(server)) or found)
            assert answers == old
        assert json.loads(server.http("/v2/models/squares_colour")[1])["versions"] == ["1"]
    assert versions(repository / "squares_colour") == (1, 3, 4)  # 2 was neither served nor the one before

    with running.served(repository) as server:
        assert colours_of(server) == new
        assert json.loads(server.http("/v2/models/squares_colour")[1])["versions"] == ["4"]


def test_a_build_that_was_cut_off_is_finished_before_it_is_served(copied, tmp_path):
    """Killed after it was published, before anything was moved."""
    whole = Path(shutil.copytree(copied, tmp_path / "whole"))
    new = build_shifted(tmp_path / "p", whole, 1)
    staged = copied / ".tricade-killed"
    for folder in ("squares_colour/2", "squares_label"):
        shutil.copytree(whole / folder, staged / "new" / folder)
    journal = {"staging": staged.name, "removed": [], "placed": ["squares_colour/2", "squares_label/colour.txt"]}
    (copied / JOURNAL).write_text(json.dumps(journal))

    with running.served(copied) as server:
        assert colours_of(server) == new
    assert not list(copied.glob(".tricade-*"))


def test_without_plan_and_onnx_there_is_nothing_to_serve(copied):
    for file in ("model.onnx", "model.plan"):
        (copied / "squares_colour" / "1" / file).unlink(missing_ok=True)
    server = running.started(copied)
    assert server.process.wait(60) == 1
    assert "squares_colour has no model.onnx in version 1 to fall back to; run: tricade build" in server.lines[-1]


def test_what_is_served_is_what_was_written(server, repository):
    """Nothing was completed or guessed: the served configuration is the rendered one."""
    status, body = server.http("/v2/models/squares_crop/config")
    served = json.loads(body)
    assert status == 200
    assert {entry["name"]: [int(side) for side in entry["dims"]] for entry in served["input"]} == {
        "CANDIDATES": [-1, 400, 6], "FRAME": [-1],
    }  # fmt: skip
    assert served["max_batch_size"] == 0
    assert served["parameters"]["iou"]["string_value"] == "0.5"


@pytest.mark.parametrize(
    "path", ["repository/models/squares/unload", "repository/models/x/load", "systemsharedmemory/region/x/register"]
)
def test_strangers_cannot_load_models_or_map_memory(server, path):
    request = urllib.request.Request(f"http://127.0.0.1:{server.http_port}/v2/{path}", data=b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 403
    with server.triton() as triton, pytest.raises(InferenceServerException, match="This protocol is restricted"):
        triton.client.unload_model("squares")
    assert server.http("/v2/models/squares/ready")[0] == 200


def test_it_listens_on_loopback_only(server):
    rows = [row.split() for table in ("tcp", "tcp6") for row in Path(f"/proc/net/{table}").read_text().splitlines()]
    listening = [row[1].split(":") for row in rows if row[3] == "0A"]
    for port in (server.grpc_port, server.http_port, server.metrics_port):
        addresses = {address for address, number in listening if number == f"{port:04X}"}
        assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1, and that within IPv6
        assert addresses
