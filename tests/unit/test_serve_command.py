"""`tricade serve` on the command line: what is bad usage before anything starts."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from tricade_cli import serve

APP = typer.Typer()
APP.callback()(lambda: None)
serve.register(APP)


@pytest.mark.parametrize("option", ["--sample-every", "--samples-max"])
def test_how_to_keep_pictures_needs_a_folder_to_keep_them_in(option, tmp_path):
    done = CliRunner().invoke(APP, ["serve", str(tmp_path), option, "3"], env={"COLUMNS": "200"})

    assert done.exit_code == 2
    assert f"{option}: expected --samples DIR beside it; without a folder no picture is kept" in done.stderr


def test_with_a_folder_it_is_no_bad_usage(tmp_path):
    """It fails later: there is nothing to serve."""
    done = CliRunner().invoke(APP, ["serve", str(tmp_path), "--samples", str(tmp_path), "--sample-every", "3"])

    assert done.exit_code == 1
    assert "holds no pipeline" in str(done.exception)
