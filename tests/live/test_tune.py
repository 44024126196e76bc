"""`tricade tune` on real servers: a setting that is written, a target that nothing meets, an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import cascade
import processes
import pytest
import running

from tricade_build.build import build
from tricade_build.spec_file import pipeline_from_file
from tricade_tune import trials
from tricade_tune.errors import ProcessDied
from tricade_tune.host import processes as server_processes
from tricade_tune.models import models_of
from tricade_tune.pictures import counted, pictures_in
from tricade_tune.setting import Setting, setting_from
from tricade_tune.trials import Load, trials_of

COMMENT = "# Kept as it is.\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = cascade.write(tmp_path / "source", instances={"preprocess": 2, "crop": 1, "label": 1})
    path.write_text(COMMENT + path.read_text(encoding="utf-8"), encoding="utf-8")
    build(path, repository=tmp_path / "built")
    (tmp_path / "pictures").mkdir()
    for count in (0, 3, 12):
        (tmp_path / "pictures" / f"{count}.png").write_bytes(cascade.picture(cascade.objects(count, seed=count)))
    return path


def started(path: Path, *options: str) -> subprocess.Popen[str]:
    folder = path.parents[1]
    command = [sys.executable, "-m", "tricade_cli.main", "tune", str(path), "--rate=20"]
    folders = [
        f"--{name}={folder / of}" for name, of in {"images": "pictures", "repository": "built", "output": "out"}.items()
    ]
    return subprocess.Popen([*command, *folders, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def setting_of(path: Path) -> Setting:
    return setting_from(pipeline_from_file(path), plans=())


def test_a_target_that_is_easy_is_met_with_less_and_written(path):
    before = path.read_text(encoding="utf-8")

    tune = started(path, "--p99=5000", "--trials=2", "--seconds=1", "--objects=0:1,1-5:2,6-:1")
    said, errors = tune.communicate(timeout=60)

    assert tune.returncode == 0, errors
    assert "chosen: 5 processes" in said
    assert f"build it: tricade build {path} --repository {path.parents[1] / 'built'}\n" in said
    after = path.read_text(encoding="utf-8")
    assert after == before.replace("preprocess: 2", "preprocess: 1")
    assert after.startswith(COMMENT)
    assert setting_of(path).processes == 5
    assert (path.parents[1] / "out" / "tune-squares.png").read_bytes().startswith(b"\x89PNG")
    assert running.left_by(tune.pid) == []


def test_a_target_that_nothing_meets_leaves_all_as_it_was_and_says_why(path):
    before = path.read_text(encoding="utf-8")

    tune = started(path, "--p99=0.1", "--trials=1", "--seconds=0.2")
    said, errors = tune.communicate(timeout=60)

    assert tune.returncode == 1
    assert path.read_text(encoding="utf-8") == before
    assert not (path.parents[1] / "out").exists()
    assert "frontier" in said
    for part in ("none of 1 settings that were tried keeps it", "  best: p99 ", "not even at 1.25 calls/s"):
        assert part in errors
    [bound] = [line for line in errors.splitlines() if line.startswith("  bound by: ")]
    assert bound.split()[2].rstrip(",") in {step.name for step in setting_of(path).steps}


def test_figures_of_a_plan_that_fell_back_are_said_to_be_that(path):
    (path.parents[1] / "built" / "squares_colour" / "1" / "model.plan").write_bytes(b"not a plan")

    tune = started(path, "--p99=5000", "--trials=1", "--seconds=0.5", "--dry-run")
    said, errors = tune.communicate(timeout=60)

    assert tune.returncode == 0, errors
    assert "as the file has it (colour on ONNX Runtime)" in said
    [line] = [line for line in said.splitlines() if "the figures are not those of its plan" in line]
    assert line.startswith("colour ran on ONNX Runtime: ")
    assert "manifest.json does not say what model.plan was built for" in line


@pytest.mark.parametrize(
    ("victim", "said"),
    [
        ("squares_crop", "void: a process of squares_crop has died"),
        ("tritonserver", "void: tritonserver ended by itself with exit code -9"),
    ],
)
def test_a_process_that_dies_makes_its_trial_void_and_no_other(path, victim, said):
    pipeline, repository = pipeline_from_file(path), path.parents[1] / "built"
    models = models_of(pipeline, path=path, repository=repository)
    pictures = [cascade.picture(cascade.objects(3))]

    def kill(length: int) -> list[bytes]:
        """What the trial calls before it calls the pipeline."""
        os.kill(next(pid for pid, name in server_processes().items() if name == victim), signal.SIGKILL)
        return pictures

    with trials_of(pipeline.name, models, repository) as serving:
        died = serving.measured(setting_of(path), Load(kill, 2, 0.5, 5000))
        lived = serving.measured(setting_of(path), Load(lambda length: pictures, 20, 0.5, 5000))

    assert died.failed.startswith(said)
    assert died.calls == 0
    assert (lived.failed, lived.missed, lived.fell_back) == ("", 0, {})
    assert running.left_by(os.getpid()) == []


def test_a_process_that_dies_over_the_first_pictures_is_no_refused_picture(path, monkeypatch):
    pipeline, repository = pipeline_from_file(path), path.parents[1] / "built"
    models = models_of(pipeline, path=path, repository=repository)

    def counted_after_a_death(client, pictures):
        os.kill(next(pid for pid, name in server_processes().items() if name == "squares_crop"), signal.SIGKILL)
        return counted(client, pictures)

    monkeypatch.setattr(trials, "counted", counted_after_a_death)
    with (
        trials_of(pipeline.name, models, repository) as serving,
        pytest.raises(ProcessDied, match="a process of squares_crop has died"),
    ):
        serving.counts(setting_of(path), pictures_in(path.parents[1] / "pictures"))
    assert running.left_by(os.getpid()) == []


def test_an_interruption_ends_the_server_and_writes_nothing(path):
    before = path.read_text(encoding="utf-8")
    tune = started(path, "--p99=5000", "--seconds=60")
    processes.wait_for(lambda: any("tritonserver" in processes.command(pid) for pid in processes.descendants(tune.pid)))
    below = processes.descendants(tune.pid)

    tune.send_signal(signal.SIGINT)
    _, errors = tune.communicate(timeout=60)

    assert tune.returncode == 1
    assert errors == f"tricade: stopped; nothing was written, {path} is as it was\n"
    assert path.read_text(encoding="utf-8") == before
    assert [pid for pid in below if processes.alive(pid)] == []
    assert running.left_by(tune.pid) == []
