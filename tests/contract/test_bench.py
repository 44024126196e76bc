"""The bench measures whom it says, on one repository, and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cascade
import numpy as np
import processes
import pytest

from bench import ROOT, measure
from bench.answers import answer_from, difference
from bench.contestants import EVERY, HERE, InProcess
from bench.load import Round
from bench.measure import Measuring, Plan
from bench.moved import Moved, moved, moved_inline
from bench.peers import served
from bench.peers.pipeline import Pipeline, Place, image_from
from bench.peers.served import PEERS, Peer, Served, multipart
from bench.processes import ServerFailed
from bench.repository import built, without_ring
from bench.workloads import Workload
from tricade.frames import DIRECTORY, PREFIX
from tricade_tune.host import free_ports

# What a peer does, with the standard library alone: a form's picture in, JSON out.
PEER = """
import email.parser, email.policy, http.server, json
from bench.peers.pipeline import Pipeline, Place, plain

place = Place.from_environment()
pipeline = Pipeline(place)

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, b"")

    def do_POST(self):
        head = b"Content-Type: " + self.headers["Content-Type"].encode() + b"\\r\\n\\r\\n"
        form = head + self.rfile.read(int(self.headers["Content-Length"]))
        (part,) = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(form).iter_parts()
        self.answer(200, json.dumps(plain(pipeline.outputs(part.get_payload(decode=True)))).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", place.port), Answers).serve_forever()
"""
THINGS = cascade.objects(20)
PICTURE = cascade.picture(THINGS)
WORKLOAD = Workload("twenty", "squares", "320 × 320, 20 objects", (PICTURE, cascade.picture()))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built({"squares"}, tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def place(repository: Path) -> Place:
    return Place(without_ring(repository, repository.parent / "plain"), "squares", 0, workers=2, threads=1)


def test_bytes_between_processes(repository: Path) -> None:
    """By hand: a picture of 320 × 320 is the detector's input as it is, 20 crops of 16 × 16 are one batch; packets begin
    with the sides of what is in them, 8 bytes each."""
    side, found = 320, 20
    tensor, candidates, crops = side * side * 3, cascade.GRID**2 * 6 * 4, found * 16 * 16 * 3
    frame = 8 * 6 + 6 * 8 + 5 * 4  # HANDLES (1, 6), TILES (1, 5), no MIN_SCORE and no PIXELS
    sent = 8 * 6 + found * 4  # ROWS (20,), no REST_ROWS, REST_INDEX and REST_SCORE
    boxes = found * 4 * (4 + 8 + 1 + 1) + 4 + 4  # BOXES, CORNERS, SCORES, CLASS; COUNT, TRUNCATED
    names = found * (4 + len("warm")) + sum(4 + len(thing.colour.encode()) for thing in THINGS)

    kept, inline = (way(repository, "squares", PICTURE) for way in (moved, moved_inline))

    assert kept == {
        "squares_preprocess": Moved(4 + len(PICTURE), tensor + frame + 2 * 4),
        "squares_detector": Moved(tensor, candidates),
        "squares_crop": Moved(frame + candidates, boxes + crops + sent),
        "squares_colour": Moved(crops, found * 8),
        "squares_label": Moved(found * 4 + sent + found * 8, names + found * 4),
    }
    assert inline["squares_crop"].given - kept["squares_crop"].given == tensor


@pytest.fixture
def pipeline(place: Place) -> Pipeline:
    return Pipeline(place)


def test_the_peers_pipeline_answers_right_without_shared_memory(repository: Path, pipeline: Pipeline) -> None:
    before = set(DIRECTORY.glob(f"{PREFIX}*"))

    found = pipeline.outputs(PICTURE)

    expected = cascade.expected(THINGS)
    np.testing.assert_allclose(found["BOXES"], expected.boxes, atol=0.01)
    assert tuple(name.decode() for name in found["COLOUR_LABELS"][:, 0]) == expected.colours
    assert set(DIRECTORY.glob(f"{PREFIX}*")) <= before
    assert '"67108864"' in (repository / "squares_preprocess" / "config.pbtxt").read_text()  # that one has its ring


def test_a_pipeline_can_be_taken_up_after_the_detector(pipeline: Pipeline) -> None:
    """As mosec's stages do, with the detector run elsewhere and its input left there."""
    first = pipeline.ensemble.ensemble_scheduling.step[0]
    tensors = pipeline.tensors(image_from(PICTURE), list(first.output_map.values()))
    found = pipeline.networks["squares_detector"]({"TENSOR": tensors.pop("TENSOR")})

    outputs = pipeline.after({**tensors, **found})

    assert difference(answer_from(outputs), answer_from(pipeline.outputs(PICTURE))) == ""


def test_a_place_is_told_by_the_environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    assert Place.from_environment() == place


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_s_command_names_its_file(name: str, place: Place) -> None:
    command = PEERS[name].command.format(**vars(place)).replace(":", " ").split()
    assert f"bench.peers.{name}" in command
    assert (ROOT / "bench" / "peers" / f"{name}.py").is_file()
    assert name in EVERY


def test_a_peer_is_started_asked_and_stopped(
    place: Place, pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "peer.py").write_text(PEER)
    peer = Peer(f"python {tmp_path / 'peer.py'}", path="/detect", ready="/ready", form=multipart)
    monkeypatch.setattr(served, "PEERS", {"mine": peer})
    monkeypatch.setattr(served, "BIN", Path(sys.executable).parent)
    there = Place(**{**vars(place), "port": free_ports(1)[0]})

    with Served("mine", there) as call:
        found = call(PICTURE)

    assert difference(found, answer_from(pipeline.outputs(PICTURE))) == ""
    with pytest.raises(OSError, match="refused"):
        call(PICTURE)


def test_who_answers_otherwise_is_named_and_not_measured(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake(InProcess):
        def __init__(self, name: str) -> None:
            super().__init__("", place)
            self.name = name

        def __enter__(self):
            if self.name == "absent":
                raise ServerFailed("out of memory")
            right = super().__enter__()
            return {"wrong": lambda _: right(WORKLOAD.pictures[1]), "broken": lambda _: 1 // 0}.get(self.name, right)

    monkeypatch.setattr(measure, "contestant_from", lambda name, **_: Fake(name))
    plan = Plan(("tricade", "wrong", "broken", "absent"), callers=(1, 2), shares=(0.5,), rounds=2, seconds=0.05)

    with Measuring(plan, place, url="", say=lambda _: None) as measuring:
        cells = list(measuring.cells(WORKLOAD))

    assert [(cell.load.callers, list(cell.rounds)) for cell in cells] == [
        (1, ["tricade"]),
        (2, ["tricade"]),
        (0, ["tricade"]),
    ]
    assert cells[2].load.rate == pytest.approx(0.5 * np.median([each.rate for each in cells[1].rounds["tricade"]]))
    assert all(isinstance(each, Round) and not each.errors for cell in cells for each in cell.rounds["tricade"])
    assert measuring.refused == {
        ("absent", "*"): "did not start: out of memory",
        ("wrong", "twenty"): "answers otherwise: 0 detections instead of 20",
        ("broken", "twenty"): "answers otherwise: ZeroDivisionError: integer division or modulo by zero",
    }


def test_the_command_measures_one_call_one_process_and_two_calls(tmp_path: Path) -> None:
    options = [
        "--workloads",
        "squares-100-small",
        "--rounds",
        "2",
        "--seconds",
        "0.05",
        "--callers",
        "2",
        "--open",
        "0.5",
        "--no-pieces",
    ]

    done = subprocess.run(
        [sys.executable, "-m", "bench", *options, "--output", tmp_path / "bench.json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "bench.json").read_text())
    assert found["not_measured"] == []
    assert [(cell["loop"], cell["callers"]) for cell in found["cells"]] == [("closed", 2), ("open", 0)]
    for cell in found["cells"]:
        assert list(cell["contestants"]) == ["tricade", "in-process", "two-calls"]
        assert all(each["errors"] == {} and each["calls"] for each in cell["contestants"].values())
    assert (tmp_path / "bench-squares-100-small.svg").is_file()
    assert "squares-100-small" in done.stdout


def test_stopped_it_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--workloads", "squares-0-small", "--output", tmp_path / "bench.json"]
    bench = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    processes.wait_for(
        lambda: any("tritonserver" in processes.command(pid) for pid in processes.descendants(bench.pid))
    )
    started = processes.descendants(bench.pid)

    bench.terminate()

    assert bench.wait(60) == 1
    assert "stopped before the end" in bench.stderr.read()
    assert [pid for pid in started if processes.alive(pid)] == []
    assert not (tmp_path / "bench.json").exists()


def test_a_budget_adds_up(tmp_path: Path) -> None:
    options = ["--workloads", "squares-100-small", "--seconds", "2", "--output", tmp_path / "budget.json"]

    done = subprocess.run(
        [sys.executable, "-m", "bench.budget", *options], cwd=ROOT, capture_output=True, text=True, timeout=300
    )

    assert done.returncode == 0, done.stdout + done.stderr
    (budget,) = json.loads((tmp_path / "budget.json").read_text())["budgets"]
    steps = ["preprocess", "detector", "crop", "colour", "label"]
    assert [step["model"] for step in budget["path"]] == [f"squares_{name}" for name in steps]
    assert budget["path"][3]["calls"] == 1  # a hundred crops in batches of 64: one was sent by `crop`
    assert budget["sum_ms"] == pytest.approx(budget["measured_ms"], rel=0.1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--callers 0", "expected a whole number above 0, got '0'"),
        ("--seconds nan", "expected a number above 0, got 'nan'"),
        ("--workloads none", "--workloads: expected one of squares-0-small,"),
        ("--contestants nobody", "invalid choice: 'nobody'"),
    ],
)
def test_bad_usage_is_told(options: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-m", "bench", *options.split()], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_without_their_environment_peers_are_not_asked_for(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from bench import options

    monkeypatch.setattr(options, "BIN", Path("/nowhere/bin"))
    monkeypatch.setattr(sys, "argv", ["bench", "--contestants", "tricade", "fastapi"])
    with pytest.raises(SystemExit):
        options.parsed("")
    assert "expected /nowhere for tricade, fastapi; run: make bench-peers" in capsys.readouterr().err

    monkeypatch.setattr(sys, "argv", ["bench", "--contestants", *HERE])
    assert options.parsed("").contestants == list(HERE)
