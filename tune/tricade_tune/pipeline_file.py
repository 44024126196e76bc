"""A setting written into the pipeline file: the lines of what differs, and no other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tricade_build.errors import SpecError
from tricade_build.spec_file import pipeline_from_file

from .errors import BadPipelineFile
from .setting import Setting, Step, setting_from
from .yaml_text import with_value

STAGES = ("preprocess", "crop", "label")
# A new key follows the first of these that its section has.
BESIDE = ("instances", "max_delay_us", "max_batch", "size", "onnx")


def text_from(path: Path) -> str:
    """With its line ends as they are; raises `SpecError` where it is no pipeline file."""
    pipeline_from_file(path)
    return path.read_bytes().decode("utf-8")


def rewritten(text: str, start: Setting, choice: Setting) -> str:
    """With what differs between the settings; raises `BadPipelineFile` where that would change something else too."""
    meant = _data_from(text)
    for keys, value in list(changes(meant, start, choice)):
        text = with_value(text, keys, value, beside=BESIDE)
        _set(meant, keys, value)
        if not _says(text, meant):
            raise BadPipelineFile(
                f"expected a pipeline file whose sections share no keys; {'.'.join(keys)} cannot be changed alone; "
                f"write the setting by hand: {choice}"
            )
    return text


def changes(data: Any, start: Setting, choice: Setting) -> Iterator[tuple[tuple[str, ...], int]]:
    """The keys that get another value. A delay that all networks without one of their own share goes to `batching`."""
    for step in choice.steps:
        section = _section_of(step)
        if step.instances != start[step.name].instances:
            yield (("instances", step.name) if step.name in STAGES else (*section, "instances")), step.instances
        if step.max_batch and step.max_batch != start[step.name].max_batch:
            yield (*section, "max_batch"), step.max_batch
    networks = [step for step in choice.steps if step.max_delay_us is not None]
    followers = [step for step in networks if _at(data, _section_of(step)).get("max_delay_us") is None]
    delays = {step.max_delay_us for step in followers}
    together = len(delays) == 1
    if together and followers[0].max_delay_us != start[followers[0].name].max_delay_us:
        yield ("batching", "max_delay_us"), followers[0].max_delay_us or 0
    for step in networks:
        if step.max_delay_us != start[step.name].max_delay_us and not (together and step in followers):
            yield (*_section_of(step), "max_delay_us"), step.max_delay_us or 0


def write(path: Path, before: str, start: Setting, choice: Setting) -> None:
    """Beside and renamed, after it was read as `tricade build` reads it; raises `BadPipelineFile` where the file is no
    longer `before`, or cannot hold the choice."""
    if choice == start:
        return
    path = path.resolve()
    if path.read_bytes() != before.encode():
        raise BadPipelineFile(f"{path} has changed meanwhile; run again, or write the setting by hand: {choice}")
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(rewritten(before, start, choice).encode())
        shutil.copymode(path, part)
        _check(part, start, choice)
        part.replace(path)
    except OSError as error:
        raise BadPipelineFile(f"{path} cannot be written: {error}; write the setting by hand: {choice}") from error
    finally:
        part.unlink(missing_ok=True)


def _check(part: Path, start: Setting, choice: Setting) -> None:
    """Networks without `instances` have as many as before: what runs them is not in the file."""
    try:
        pipeline = pipeline_from_file(part)
    except SpecError as error:
        raise BadPipelineFile(f"{error}; write the setting by hand: {choice}") from error
    found = setting_from(pipeline, plans=())
    sections = {"detector": pipeline.detector, **pipeline.classifiers}
    for name, section in sections.items():
        if section.instances is None:
            found = found.changed(name, instances=start[name].instances)
    if found != choice:
        raise BadPipelineFile(
            f"expected a pipeline file whose sections share no keys; with the setting written it would say {found}; "
            f"write it by hand: {choice}"
        )


def _section_of(step: Step) -> tuple[str, ...]:
    return ("detector",) if step.name == "detector" else ("classifiers", step.name)


def _at(data: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        data = data[key]
    return data


def _set(data: Any, keys: tuple[str, ...], value: int) -> None:
    for key in keys[:-1]:
        data = data.setdefault(key, {})
    data[keys[-1]] = value


def _says(text: str, meant: Any) -> bool:
    try:
        return bool(_data_from(text) == meant)
    except (yaml.YAMLError, TypeError):
        return False


def _data_from(text: str) -> Any:
    """Nothing in it is there twice, also where anchors share it in the text."""
    return json.loads(json.dumps(yaml.safe_load(text)))
