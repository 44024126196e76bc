"""`tricade build` and `tricade models` on the command line: exit codes and what is printed where."""

from __future__ import annotations

import json
from pathlib import Path

import cascade
import pytest

from tricade_cli import main as cli


def tricade(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command in this process; the exit code."""
    monkeypatch.setattr("sys.argv", ["tricade", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def test_build_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build = ("build", str(cascade.write(tmp_path)), "--repository", str(tmp_path / "r"))

    monkeypatch.setattr("tricade_build.targets.tensorrt.gpus", tuple)
    assert tricade(*build, monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    assert "built   squares_detector\n" in out
    assert err == "target onnxruntime: not tensorrt: this machine shows no CUDA device\n"
    assert tricade(*build, "--json", monkeypatch=monkeypatch) == 0
    assert json.loads(capsys.readouterr().out) == {
        "pipeline": "squares",
        "built": [],
        "kept": ["squares_detector", "squares_colour"],
        "removed": [],
        "verified": {},
        "unverified": {},
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("build", "no.yaml"), 2, "no.yaml"),
        (("build", "bad.yaml"), 1, "tricade: bad.yaml: expected a section with name, detector, classifiers; got 1\n"),
        (
            ("build", "bad.yaml", "--target", "cuda"),
            1,
            "tricade: expected a target out of onnxruntime, tensorrt, tensorrt-rtx; got cuda\n",
        ),
        (("models", "faces"), 1, "tricade: expected models out of text; got faces\n"),
        (("build",), 2, "Missing argument"),
        (("bake",), 2, "bake"),
    ],
)
def test_what_goes_wrong_is_said_without_a_traceback(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("1")

    assert tricade(*arguments, monkeypatch=monkeypatch) == code

    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err
