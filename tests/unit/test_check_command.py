"""`tricade check` on the command line: exit codes, the table, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import cascade
import pytest
import typer
from typer.testing import CliRunner, Result

from tricade_build.build import build
from tricade_cli import check

APP = typer.Typer()
APP.callback()(lambda: None)
check.register(APP)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    build(cascade.write(tmp_path / "pipeline"), repository=tmp_path / "repository")
    return tmp_path / "repository"


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(APP, ["check", *map(str, arguments)], env={"COLUMNS": "200"})


def test_a_repository_without_mistakes(repository: Path) -> None:
    done = ran(repository)

    assert (done.exit_code, done.output) == (0, f"6 models checked in {repository}: nothing is wrong\n")
    assert json.loads(ran(repository, "--json").output) == []


def test_an_error_is_exit_1_and_a_warning_is_not(repository: Path) -> None:
    (repository / "squares_label" / "detector.txt").write_text("warm\nwarm\n")
    warned = ran(repository)
    (repository / "squares_colour" / "1" / "model.onnx").unlink()
    failed = ran(repository)

    assert (warned.exit_code, failed.exit_code) == (0, 1)
    assert "6 models checked: 0 errors, 1 warnings" in warned.output
    assert "6 models checked: 1 errors, 1 warnings" in failed.output
    assert failed.output.index("model.plan or model.onnx") < failed.output.index("'warm' is in lines 1 and 2")


def test_json_has_what_the_table_has(repository: Path) -> None:
    (repository / "squares_colour" / "1" / "model.onnx").unlink()

    done = ran(repository, "--json")

    assert done.exit_code == 1
    assert json.loads(done.output) == [
        {
            "severity": "error",
            "model": "squares_colour",
            "problem": "expected model.plan or model.onnx in squares_colour/1; there is none",
            "remedy": "run: tricade build pipeline/squares.yaml",
        }
    ]


def test_nothing_that_a_file_says_moves_the_cursor(repository: Path) -> None:
    (repository / "squares_label" / "detector.txt").write_text("\x1b[2J[red]\n" * 2)

    assert "\x1b" not in ran(repository).output
    assert "[red]" in ran(repository).output


def test_a_folder_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    assert ran(tmp_path / "none").exit_code == 2
