"""`pipeline_from_file`: YAML to a checked `Pipeline`; everything that is wrong is said at once."""

from __future__ import annotations

import difflib
import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from .errors import SpecError
from .rules import problems_of
from .spec import METADATA, NAME_FORM, Classifier, Detector, Pipeline


class _Loader(yaml.SafeLoader):
    """Refuses a key given twice, which YAML would answer with the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is a section or a list", key.start_mark)
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} is given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def pipeline_from_file(path: Path, *, precision: str | None = None) -> Pipeline:
    """Parse, check, and make its paths absolute; raises `SpecError` with all problems.

    `precision` stands in the place of the file's.
    """
    data = _data_from_yaml(path)
    if precision is not None:
        data["precision"] = precision
    try:
        # Strict over JSON: no coercion of "8" to 8, but lists for tuples and whole numbers for floats.
        pipeline = Pipeline.model_validate_json(json.dumps(data), strict=True)
    except (ValidationError, TypeError) as error:
        if isinstance(error, TypeError):
            raise SpecError(path, [f"expected text, numbers, lists and sections; {error}"]) from error
        # A default that follows from a wrong value is no problem of its own.
        found = [details for details in error.errors() if details["type"] != "default_factory_not_called"]
        raise SpecError(path, [_problem(details, data) for details in found]) from error
    problems = list(problems_of(pipeline))
    pipeline = _with_paths(pipeline, path, problems)
    if problems:
        raise SpecError(path, problems)
    return pipeline


def _data_from_yaml(path: Path) -> Any:
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise SpecError(path, [f"expected a pipeline file; {error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(path, [f"expected YAML; {' '.join(str(error).split())}"]) from error
    if not isinstance(data, dict):
        raise SpecError(path, ["expected a section with name, detector, classifiers; got " + _shown(data)])
    return data


def _problem(details: ErrorDetails, data: Any) -> str:
    """One pydantic error as `path: expected …; got …`."""
    loc = [part for part in details["loc"] if part != "[key]"]
    if details["type"] == "extra_forbidden":
        return _unknown_key(loc)
    field, depth = _field_at(loc)
    expected = field.description if field else "a section"
    if details["type"] == "missing" and depth == len(loc):
        return f"{_dotted(loc)}: missing; expected {expected}"
    if details["loc"][-1] == "[key]":
        return f"{_dotted(loc)}: expected {NAME_FORM}; got {loc[-1]!r}"
    hint = str(details.get("ctx", {}).get("error", ""))
    return f"{_dotted(loc[:depth])}: expected {expected}; got {_shown(_value_at(data, loc[:depth]))}" + (
        f"; {hint}" if hint else ""
    )


def _unknown_key(loc: list[int | str]) -> str:
    section = _section_at(loc[:-1])
    known = sorted(section.model_fields) if section else []
    near = difflib.get_close_matches(str(loc[-1]), known, n=1)
    right = f"did you mean `{near[0]}`?" if near else f"known here are {', '.join(known)}"
    return f"{_dotted(loc)}: unknown key; {right}"


def _section_at(loc: list[int | str]) -> type[BaseModel] | None:
    return _walk(loc)[2]


def _field_at(loc: list[int | str]) -> tuple[FieldInfo | None, int]:
    """The innermost field that `loc` passes, and how many of its parts lead there."""
    field, depth, _ = _walk(loc)
    return field, depth


def _walk(loc: list[int | str]) -> tuple[FieldInfo | None, int, type[BaseModel] | None]:
    """Follow `loc` from the pipeline: innermost field, parts used, the section it holds."""
    section: type[BaseModel] | None = Pipeline
    field: FieldInfo | None = None
    depth = 0
    while section and depth < len(loc) and str(loc[depth]) in section.model_fields:
        field = section.model_fields[str(loc[depth])]
        kinds = (field.annotation, *get_args(field.annotation))
        section = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        depth += 1
        if get_origin(field.annotation) is dict and depth < len(loc):
            depth += 1  # the name of a classifier
    return field, depth, section


def _value_at(data: Any, loc: list[int | str]) -> Any:
    for part in loc:
        data = data.get(part) if isinstance(data, Mapping) else data
    return data


def _dotted(loc: list[int | str]) -> str:
    return ".".join(str(part) for part in loc)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _with_paths(pipeline: Pipeline, path: Path, problems: list[str]) -> Pipeline:
    """Make the paths of ONNX files, label files and pictures absolute; missing ones join `problems`."""

    def found(network: Detector | Classifier, where: str) -> dict[str, Any]:
        update: dict[str, Any] = {"onnx": _file(network.onnx, path, f"{where}.onnx", problems)}
        if isinstance(network.labels, str) and not network.labels.startswith(METADATA):
            update["labels"] = _file(network.labels, path, f"{where}.labels", problems)
        return update

    detector = pipeline.detector.model_copy(update=found(pipeline.detector, "detector"))
    classifiers = {
        name: classifier.model_copy(update=found(classifier, f"classifiers.{name}"))
        for name, classifier in pipeline.classifiers.items()
    }
    pictures = {
        key: section.model_copy(update={"images": _folder(section.images, path, f"{key}.images", problems)})
        for key in ("calibration", "verification")
        if (section := getattr(pipeline, key)) and section.images
    }
    return pipeline.model_copy(update={"detector": detector, "classifiers": classifiers, **pictures})


def _file(name: str, path: Path, where: str, problems: list[str]) -> str:
    return _found(name, path, where, problems, kind="file")


def _folder(name: str, path: Path, where: str, problems: list[str]) -> str:
    return _found(name, path, where, problems, kind="folder")


def _found(name: str, path: Path, where: str, problems: list[str], *, kind: str) -> str:
    """Beside the pipeline file, else in the working directory."""
    places = [path.resolve().parent / name, Path.cwd() / name]
    for place in places:
        if place.is_file() if kind == "file" else place.is_dir():
            return str(place)
    problems.append(f"{where}: expected a {kind}; there is neither {places[0]} nor {places[1]}")
    return name
