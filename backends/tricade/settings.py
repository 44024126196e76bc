"""Settings of a stage: Triton's string parameters, parsed once into a frozen dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from .errors import BadSettings

T = TypeVar("T")
Size = tuple[int, int]  # height, width in pixels
Names = tuple[str, ...]
Pad = int | Literal["edge"]  # a grey level 0 to 255, or the outermost pixels repeated


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",")) if text else ()


def _size(text: str) -> Size:
    height, width = _integers(text)
    return height, width


def _pad(text: str) -> Pad:
    if text == "edge":
        return "edge"
    if not 0 <= int(text) <= 255:
        raise ValueError(text)
    return int(text)


# How a field's type reads its text, and what the text should look like.
_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "text"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    bool: (_boolean, "true or false"),
    Size: (_size, "height,width"),
    Pad: (_pad, "a grey level from 0 to 255, or edge"),
    Names: (lambda text: tuple(text.split(",")), "names separated by commas"),
    tuple[int, ...]: (_integers, "whole numbers separated by commas"),
}


def groups_of(parameters: Mapping[str, str]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Split `name` from `group.name`: the plain parameters, and those of each group."""
    plain: dict[str, str] = {}
    groups: dict[str, dict[str, str]] = {}
    for key, value in parameters.items():
        group, dot, name = key.partition(".")
        if dot:
            groups.setdefault(group, {})[name] = value
        else:
            plain[key] = value
    return plain, groups


def settings_from_parameters(kind: type[T], parameters: Mapping[str, str], *, where: str) -> T:
    """Parse `parameters` into the dataclass `kind`; unknown, missing or unreadable ones raise `BadSettings`."""
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(parameters.keys() - fields.keys()):
        raise BadSettings(f"{where}: unknown parameter {unknown[0]!r}; known are {', '.join(sorted(fields))}")
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in parameters:
            values[name] = _read(hints[name], parameters[name], where=f"{where}: parameter {name!r}")
        elif field.default is dataclasses.MISSING:
            raise BadSettings(f"{where}: parameter {name!r} is missing; render the repository again with tricade build")
    try:
        return kind(**values)
    except ValueError as error:
        raise BadSettings(f"{where}: {error}") from error


def _read(hint: Any, text: str, *, where: str) -> Any:
    if NoneType in get_args(hint):  # an optional parameter that is given
        (hint,) = (option for option in get_args(hint) if option is not NoneType)
    reader, form = _READERS[hint]
    try:
        return reader(text)
    except (ValueError, KeyError) as error:
        raise BadSettings(f"{where} should be {form}, is {text!r}") from error
