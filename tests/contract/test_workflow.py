"""The workflows: their shell steps run here as a runner runs them, and they may do no more than they must."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps_of(name: str) -> list[dict[str, Any]]:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    (job,) = workflow["jobs"].values()
    return list(job["steps"])


@pytest.fixture
def clone(tmp_path) -> Path:
    """What `actions/checkout` gives, with the environment that the step `install` would make."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")], check=True)
    (tmp_path / "clone" / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path / "clone"


def run(step: dict[str, Any], clone: Path, environment: dict[str, str]) -> None:
    """As GitHub does: a file for bash, `-e`; what the step wrote into $GITHUB_PATH leads the next one's PATH."""
    script, paths = clone.parent / "step.sh", clone.parent / "github_path"
    script.write_text(step["run"])
    paths.touch()
    added = paths.read_text().splitlines()[::-1]
    environment = environment | {
        "GITHUB_PATH": str(paths),
        "PATH": os.pathsep.join([*added, environment["PATH"]]),
    }
    done = subprocess.run(
        ["bash", "-e", str(script)], cwd=clone, env=environment | step.get("env", {}), capture_output=True, text=True
    )
    assert done.returncode == 0, f"{step['name']}: {done.stdout}{done.stderr}"


def test_engines_are_built_and_published_whole(clone, tmp_path):
    steps = [step for step in steps_of("engines") if "run" in step]
    assert [step["name"] for step in steps] == ["install", "path", "export", "build", "check", "pack"]
    install, *rest = steps
    subprocess.run([*install["run"].split(), "--dry-run"], cwd=clone, check=True, capture_output=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    for step in rest:
        run(step, clone, environment)

    (publish,) = [step for step in steps_of("engines") if step.get("name") == "publish"]
    received = tmp_path / "received"
    received.mkdir()
    subprocess.run(["tar", "-C", str(received), "-xf", str(clone / publish["with"]["path"])], check=True)
    assert {path.parents[1].name for path in received.glob("*/*/model.plan")} == {
        "text_detector", "text_orientation", "text_text",
    }  # fmt: skip
    assert (received / "text_crop" / "1").is_dir()
    check = next(step for step in rest if step["name"] == "check")
    run(check | {"run": check["run"].replace("out/repository", str(received))}, clone, environment)


def test_the_readme_shows_the_very_steps():
    (block,) = re.findall(r"^```yaml\n(- name: export.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    assert yaml.safe_load(block) == steps_of("engines")[-5:]


def test_ci_runs_what_a_change_must_pass():
    (command,) = [step["run"] for step in steps_of("ci") if "run" in step]
    assert os.access(ROOT / command, os.X_OK)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_read_only_and_name_actions_by_commit(file):
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    triggers = workflow[True]  # YAML 1.1 reads `on` as a boolean
    assert "pull_request_target" not in triggers
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step.get("uses", f"actions/x@{'0' * 40}"))
            assert "${{" not in step.get("run", "")  # what others wrote is never pasted into a shell
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
