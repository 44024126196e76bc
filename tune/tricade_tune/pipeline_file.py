"""A setting written into the pipeline file, with all comments and in its order."""

from __future__ import annotations

import difflib
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from tricade_build.errors import SpecError
from tricade_build.spec_file import pipeline_from_file

from .errors import BadPipelineFile
from .setting import Setting, Step, setting_from

STAGES = ("preprocess", "crop", "label")
# A new key follows the first of these that its section has and that no comment for the next key hangs on.
BESIDE = ("instances", "max_delay_us", "max_batch", "size", "onnx")
_COMMENT = re.compile(r"(?:^|\s)(#.*)$", re.MULTILINE)
# Columns that a section, a list's items and their dashes are indented by.
_INDENTS = [(mapping, dash + 2, dash) for mapping, dash in product((2, 4), (0, 2, 4))]


def text_from(path: Path) -> str:
    """Of a file that can be rewritten; raises `BadPipelineFile` where that would lose something, `SpecError` where it
    is no pipeline file."""
    pipeline_from_file(path)
    text = path.read_text(encoding="utf-8")
    by_hand = "or use --dry-run and write the setting by hand"
    try:
        data, form = _parsed(text)
        copy = _text(form, data)
    except YAMLError as error:
        why = " ".join(str(error).split())
        raise BadPipelineFile(f"{path}: expected YAML 1.2, to write into; {why}; change that, {by_hand}") from error
    if lost := Counter(_COMMENT.findall(text)) - Counter(_COMMENT.findall(copy)):
        raise BadPipelineFile(
            f"{path}: expected comments that can be kept when the file is written; {next(iter(lost))!r} stands inside "
            f"of [ ] or {{ }}; move it above, {by_hand}"
        )
    if yaml.safe_load(copy) != yaml.safe_load(text):
        raise BadPipelineFile(
            f"{path}: expected YAML that means the same when written again; it does not; change it, {by_hand}"
        )
    return text


def rewritten(text: str, start: Setting, choice: Setting) -> str:
    """With what differs between the settings."""
    data, form = _parsed(text)
    for keys, value in changes(data, start, choice):
        section = data
        for key in keys[:-1]:
            if key not in section:
                section[key] = CommentedMap()
                section[key].fa.set_flow_style()
            section = section[key]
        _put(section, keys[-1], value)
    return _text(form, data)


def changes(data: Any, start: Setting, choice: Setting) -> Iterator[tuple[tuple[str, ...], int]]:
    """The keys that get another value. A delay that all networks without one of their own share goes to `batching`."""
    for step in choice.steps:
        section = _section_of(step)
        if step.instances != start[step.name].instances:
            yield (("instances", step.name) if step.name in STAGES else (*section, "instances")), step.instances
        if step.max_batch and step.max_batch != start[step.name].max_batch:
            yield (*section, "max_batch"), step.max_batch
    networks = [step for step in choice.steps if step.max_delay_us is not None]
    followers = [step for step in networks if "max_delay_us" not in _at(data, _section_of(step))]
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
    if path.read_text(encoding="utf-8") != before:
        raise BadPipelineFile(f"{path} has changed meanwhile; run again, or write the setting by hand: {choice}")
    part = path.with_name(f".{path.name}.part")
    try:
        lines = "\r\n" if b"\r\n" in path.read_bytes() else "\n"
        part.write_text(rewritten(before, start, choice), encoding="utf-8", newline=lines)
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


def _put(section: Any, key: str, value: int) -> None:
    beside = next((each for each in BESIDE if each in section and not _carries_more(section, each)), None)
    if key in section or beside is None:
        section[key] = value
    else:
        section.insert(list(section).index(beside) + 1, key, value)


def _carries_more(section: CommentedMap, key: str) -> bool:
    """Whether lines follow the key that belong to the next one: ruamel keeps them with the key before."""
    token = section.ca.items.get(key, [None] * 3)[2]
    return token is not None and token.value.count("\n") > 1


def _parsed(text: str) -> tuple[Any, YAML]:
    """With the indentation that comes closest to the file's."""
    forms = [_form(*indents) for indents in _INDENTS]
    copies = [_text(form, form.load(text)) for form in forms]
    near = [difflib.SequenceMatcher(None, text.splitlines(), copy.splitlines()).ratio() for copy in copies]
    form = forms[near.index(max(near))]
    return form.load(text), form


def _form(mapping: int, sequence: int, offset: int) -> YAML:
    form = YAML()
    form.preserve_quotes = True
    form.width = 1 << 16  # lines stay as long as they are
    form.indent(mapping=mapping, sequence=sequence, offset=offset)
    return form


def _text(form: YAML, data: Any) -> str:
    text = StringIO()
    form.dump(data, text)
    return text.getvalue()
