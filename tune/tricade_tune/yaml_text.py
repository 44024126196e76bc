"""A value set in a YAML text where it stands: every other line stays as it is, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

_BREAKS = "\r\n\x85\u2028\u2029"  # as PyYAML sees them
_BREAK = re.compile(f"\r\n|[{_BREAKS}]")


@dataclass(frozen=True)
class Place:
    """A value in the text, from its anchor or tag to its last character. A section (a mapping) has entries, which
    begin at a column, or in { } and then at `inside`."""

    start: int
    end: int
    entries: Mapping[str, Place] = field(default_factory=dict)
    column: int = 0
    inside: int | None = None
    is_alias: bool = False


def with_value(text: str, keys: Sequence[str], value: int, *, beside: Sequence[str] = ()) -> str:
    """With one value replaced; or added, after the first key in `beside` that its section has, else as its last.

    A section that is an alias gets a value of its own by a merge key.
    """
    section = place_in(text)
    for depth, key in enumerate(keys):
        found, below = section.entries.get(key), keys[depth + 1 :]
        if found is None:
            return _added(text, section, f"{key}: {_flow(below, value)}", beside)
        if found.is_alias and below:
            merged = f"{{<<: {text[found.start : found.end]}, {_flow(below, value)[1:-1]}}}"
            return text[: found.start] + merged + text[found.end :]
        section = found
    return _replaced(text, section, str(value))


def place_in(text: str) -> Place:
    """Of the whole document; raises `yaml.YAMLError`."""
    events = iter(yaml.parse(text, Loader=yaml.SafeLoader))
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            return _place(next(events), events)
    raise yaml.YAMLError("expected a document")


def _place(event: yaml.Event, events: Iterator[yaml.Event]) -> Place:
    """Of the value that begins with `event`, the rest of which is taken from `events`."""
    (start, _), (end, column) = _at(event.start_mark), _at(event.end_mark)
    if not isinstance(event, yaml.CollectionStartEvent):
        return Place(start, end, is_alias=isinstance(event, yaml.AliasEvent))
    inside = end if event.flow_style else None
    entries: dict[str, Place] = {}
    while not isinstance(head := next(events), yaml.CollectionEndEvent):
        place = _place(head, events)
        if isinstance(event, yaml.MappingStartEvent):
            place = entries[getattr(head, "value", "")] = _place(next(events), events)
        end = place.end
    # A block ends for PyYAML where the next one begins.
    return Place(start, end if inside is None else _at(head.end_mark)[0], entries, column, inside)


def _at(mark: Any) -> tuple[int, int]:
    return mark.index, mark.column


def _flow(keys: Sequence[str], value: int) -> str:
    """The value in a section for each key, e.g. {crop: 3}."""
    return "".join(f"{{{key}: " for key in keys) + str(value) + "}" * len(keys)


def _added(text: str, section: Place, entry: str, beside: Sequence[str]) -> str:
    near = [section.entries[key] for key in beside if key in section.entries]
    last = max((place.end for place in section.entries.values()), default=section.inside or 0)
    at = near[0].end if near else last
    if section.inside is not None:
        return text[:at] + (f", {entry}" if section.entries else entry) + text[at:]
    at = _next_line(text, at, section.column)
    before = _BREAK.search(text)
    new_line = before.group() if before else "\n"
    indented = " " * section.column + entry
    if not _BREAK.match(text, at - 1):  # the last line, which does not end
        return f"{text}{new_line}{indented}"
    return f"{text[:at]}{indented}{new_line}{text[at:]}"


def _next_line(text: str, at: int, column: int) -> int:
    """Where the line after this one begins, and after comments that are indented deeper than its section."""
    if not _BREAK.match(text, at - 1):
        end = _BREAK.search(text, at)
        at = end.end() if end else len(text)
    deeper = re.compile(rf" {{{column + 1},}}#[^{_BREAKS}]*(?:{_BREAK.pattern}|\Z)")
    while match := deeper.match(text, at):
        at = match.end()
    return at


def _replaced(text: str, place: Place, value: str) -> str:
    """Its anchor or tag stays, and a comment behind it stays in its column."""
    old = (text[place.start : place.end].split() or [""])[-1]
    start = place.end - len(old)
    if not old:
        value = f" {value}"
    gap = re.compile(r" *(?=#)").match(text, place.end)
    width = len(gap.group()) if gap else 0
    spaces = " " * max(1, width + len(old) - len(value)) if width else ""
    return text[:start] + value + spaces + text[place.end + width :]
