"""`tricade tune` on the command line: options, exit codes, what it says and writes; nothing is served."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import cascade
import pytest
import typer
from typer.testing import CliRunner, Result

from tricade_build.spec_file import pipeline_from_file
from tricade_cli import main as cli
from tricade_cli import tune
from tricade_tune.objects import Share
from tricade_tune.search import Did, Goal, Measured, chosen, failure
from tricade_tune.setting import Setting, setting_from
from tricade_tune.tune import Asked, Outcome, Report
from tricade_tune.verdict import Missed

APP = typer.Typer()
APP.callback()(lambda: None)
tune.register(APP)

WHY = "manifest.json names another GPU"


@dataclass
class Search:
    """In the place of the one on real servers: what it finds is given, for changes of the file's setting."""

    found: Mapping[str, Measured] = field(default_factory=lambda: {"": measured(40), "crop": measured(30)})
    asked: list[Asked] = field(default_factory=list)

    def __call__(self, asked: Asked, report: Report) -> Outcome:
        self.asked.append(asked)
        report("trying", 0.5)
        start = setting_from(pipeline_from_file(asked.pipeline), plans=())
        tried = {changed(start, name): measured for name, measured in self.found.items()}
        goal = Goal(asked.p99_ms, asked.trials)
        choice = chosen(tried, goal)
        best = min(tried, key=lambda setting: tried[setting].p99_ms)
        why = None if choice else Missed(best, tried[best], goal, len(tried), asked.rate, 0.0, cores=2)
        return Outcome("squares", start, tried, goal, choice, why, counts=(1,))


def changed(start: Setting, name: str) -> Setting:
    """One instance less of a step, or the same."""
    return start.changed(name, instances=start[name].instances - 1) if name else start


def measured(p99_ms: float, **more: object) -> Measured:
    return Measured(p99_ms, 0.0, 200, {"crop": Did(1, 1, 2.5, 4.0, 0.2)}, 0.01, **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    return cascade.write(tmp_path / "source", instances={"preprocess": 2, "crop": 2, "label": 1})


@pytest.fixture
def before(path: Path) -> bytes:
    return path.read_bytes()


def ran(path: Path, *options: str, search: Callable[[Asked, Report], Outcome] | None = None) -> Result:
    folder = path.parents[1]
    given = [f"--images={folder / 'pictures'}", "--p99=50", "--rate=20", f"--output={folder / 'out'}", *options]
    return CliRunner().invoke(APP, ["tune", str(path), *given], obj=search or Search(), env={"COLUMNS": "200"})


def row(said: str, setting: str) -> list[str]:
    """The cells of the table's line for a setting."""
    (line,) = [line for line in said.splitlines() if f"│ {setting} " in line]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_the_choice_is_written_and_said(path: Path) -> None:
    done = ran(path)

    assert done.exit_code == 0
    assert row(done.stdout, "crop 1") == ["chosen", "6", "30", "0.0%", "crop, 2.5 ms", "crop 1"]
    assert row(done.stdout, "as the file has it")[:3] == ["", "7", "40"]
    assert f"written into {path}: crop 1; build it: tricade build {path} --repository model_repository\n" in done.stdout
    assert pipeline_from_file(path).instances.crop == 1
    assert (path.parents[1] / "out" / "tune-squares.png").is_file()


def test_as_json_it_says_the_same_and_no_more(path: Path) -> None:
    done = ran(path, "--json")

    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert (said["pipeline"], said["rate"], said["p99_ms"], said["missed"]) == ("squares", 20.0, 50.0, None)
    assert [(each["processes"], each["measured"]["p99_ms"]) for each in said["tried"]] == [(7, 40.0), (6, 30.0)]
    assert said["chosen"] == said["tried"][1]
    assert said["frontier"] == [said["chosen"]]
    assert {step["name"]: step["instances"] for step in said["chosen"]["steps"]} == {
        "preprocess": 2, "detector": 1, "crop": 1, "colour": 1, "label": 1,
    }  # fmt: skip
    assert said["chosen"]["measured"]["steps"]["crop"]["queue_ms"] == 2.5
    assert pipeline_from_file(path).instances.crop == 1
    assert (path.parents[1] / "out" / "tune-squares.png").is_file()


def test_as_json_a_target_that_is_missed_and_a_trial_without_figures(path: Path, before: bytes) -> None:
    done = ran(path, "--json", search=Search({"": failure("cannot be served: no room")}))

    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert said["chosen"] is None
    assert said["missed"].startswith("expected calls that can be measured; none of 1 settings")
    assert said["tried"][0]["measured"]["p99_ms"] is None
    assert said["tried"][0]["measured"]["failed"] == "cannot be served: no room"
    assert path.read_bytes() == before


def test_what_the_search_is_asked_for(path: Path) -> None:
    search, pictures = Search(), path.parents[1] / "pictures"
    ran(path, search=search)
    ran(path, "--p99=12.5", "--rate=0.5", "--objects=0:1", "--repository=r", "--trials=3", "--seconds=2", search=search)

    assert search.asked == [
        Asked(path, pictures, 50.0, 20.0, (), Path("model_repository"), 16, 5.0),
        Asked(path, pictures, 12.5, 0.5, (Share(0, 0, 1.0),), Path("r"), 3, 2.0),
    ]


def test_a_dry_run_writes_nothing(path: Path, before: bytes) -> None:
    done = ran(path, "--dry-run")

    assert done.exit_code == 0
    assert f"{path} is as it was (--dry-run)\n" in done.stdout
    assert path.read_bytes() == before
    assert not (path.parents[1] / "out").exists()


def test_what_the_file_has_already_is_not_written_again(path: Path, before: bytes) -> None:
    done = ran(path, search=Search({"": measured(40)}))

    assert done.exit_code == 0
    assert f"{path} has it already\n" in done.stdout
    assert path.read_bytes() == before


def test_a_target_that_is_missed_is_exit_1(path: Path, before: bytes) -> None:
    done = ran(path, "--p99=20")

    assert done.exit_code == 1
    assert "tricade: expected p99 of at most 20 ms at 20 calls/s; none of 2 settings" in done.stderr
    assert "chosen" not in done.stdout
    assert path.read_bytes() == before
    assert not (path.parents[1] / "out").exists()


def test_figures_of_a_fallback_are_said_to_be_that(path: Path) -> None:
    fell_back = {"detector": WHY, "colour": WHY}
    done = ran(path, search=Search({"": measured(40), "crop": measured(30, fell_back=fell_back)}))

    assert row(done.stdout, "crop 1")[-1] == "crop 1 (detector, colour on ONNX Runtime)"
    assert row(done.stdout, "as the file has it")[-1] == "as the file has it"
    said = "ran on ONNX Runtime in 1 of 2 trials: the figures are not those of its plan: " + WHY
    assert f"detector {said}\ncolour {said}\n" in done.stdout


def test_a_missed_target_of_a_fallback_says_so_too(path: Path) -> None:
    done = ran(path, "--p99=20", search=Search({"": measured(40, fell_back={"colour": WHY})}))

    assert f"colour ran on ONNX Runtime: the figures are not those of its plan: {WHY}\n" in done.stdout
    assert "  not of plans: colour ran on ONNX Runtime\n" in done.stderr


def test_a_trial_that_is_void_has_no_figures_and_the_others_count(path: Path) -> None:
    died = "void: a process of squares_crop has died"
    done = ran(path, search=Search({"": measured(40), "crop": failure(died)}))

    assert done.exit_code == 0
    assert row(done.stdout, "crop 1") == ["", "6", "-", "-", "", f"crop 1 ({died})"]
    assert row(done.stdout, "as the file has it")[0] == "chosen"


def test_where_every_trial_is_void_it_is_an_error_and_no_missed_target(path: Path, before: bytes) -> None:
    done = ran(path, search=Search({"": failure("void: tritonserver ended by itself")}))

    assert done.exit_code == 1
    assert "none of 1 settings that were tried has figures" in done.stderr
    assert "(void: tritonserver ended by itself)" in done.stderr
    assert "p99 of at most" not in done.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (
            Measured(40, 0.0, 99, {}, 0.01),
            "a trial had 99 calls: of so few the p99 is the slowest; --seconds 5 gives enough",
        ),
        (measured(40, late=0.06), "up to 6% of a trial's calls began late"),
    ],
)
def test_what_makes_figures_doubtful_is_said(measured: Measured, said: str, path: Path) -> None:
    assert said in ran(path, search=Search({"": measured})).stdout
    assert said not in ran(path).stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_and_further_ones_do_not_disturb_that(number: signal.Signals, path: Path, before: bytes):
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    ended: list[bool] = []

    def search(asked: Asked, report: Report) -> Outcome:
        try:
            os.kill(os.getpid(), number)
            pytest.fail("nothing was raised")
        finally:  # a server is stopped here
            for each in handlers:
                os.kill(os.getpid(), each)
            ended.append(True)

    done = ran(path, search=search)

    assert done.exit_code == 1
    assert done.stderr == f"tricade: stopped; nothing was written, {path} is as it was\n"
    assert (done.stdout, ended, path.read_bytes()) == ("", [True], before)
    assert {each: signal.getsignal(each) for each in handlers} == handlers


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--p99=0", "--p99"),
        ("--p99=-5", "--p99"),
        ("--p99=inf", "--p99': expected a finite number; got inf"),
        ("--p99=nan", "--p99"),
        ("--p99=fast", "--p99"),
        ("--rate=0", "--rate"),
        ("--rate=-1", "--rate"),
        ("--rate=inf", "--rate': expected a finite number; got inf"),
        ("--trials=0", "--trials"),
        ("--seconds=0", "--seconds"),
        ("--seconds=inf", "--seconds': expected a finite number; got inf"),
        ("--objects=many", "--objects: expected ranges of object counts with their shares"),
        ("--images=nowhere", "nowhere"),
        ("--p95=50", "--p95"),
    ],
)
def test_bad_usage_is_exit_2_before_anything_is_tried(option: str, said: str, path: Path, before: bytes) -> None:
    search = Search()

    done = ran(path, option, search=search)

    assert done.exit_code == 2
    assert said in done.stderr
    assert search.asked == []
    assert path.read_bytes() == before


@pytest.mark.parametrize("missing", ["PIPELINE", "--images", "--p99", "--rate"])
def test_what_is_missing_is_bad_usage(missing: str, path: Path) -> None:
    given = {"PIPELINE": str(path), "--images": f"--images={path.parent}", "--p99": "--p99=50", "--rate": "--rate=20"}
    del given[missing]

    done = CliRunner().invoke(APP, ["tune", *given.values()], obj=Search(), env={"COLUMNS": "200"})

    assert done.exit_code == 2
    assert missing.strip("-").lower() in done.stderr.lower()


def test_an_error_of_the_search_is_a_message_and_exit_1(
    path: Path,
    before: bytes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The whole command, up to where something would be served."""
    given = [f"--images={path.parent}", "--p99=50", "--rate=20", f"--repository={path.parent / 'nowhere'}"]
    monkeypatch.setattr("sys.argv", ["tricade", "tune", str(path), *given])

    with pytest.raises(SystemExit) as caught:
        cli.main()

    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (1, "")
    assert "is not a folder; run: tricade build PIPELINE --repository" in err
    assert "Traceback" not in err
    assert path.read_bytes() == before


def test_a_file_that_changed_while_it_ran_stays(path: Path) -> None:
    def search(asked: Asked, report: Report) -> Outcome:
        path.write_text(path.read_text() + "# Mine.\n")
        return Search()(asked, report)

    done = ran(path, search=search)

    assert "has changed meanwhile; run again, or write the setting by hand: " in str(done.exception)
    assert path.read_text().endswith("# Mine.\n")
    assert pipeline_from_file(path).instances.crop == 2
