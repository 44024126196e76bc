"""A result as a table, in the order one reads."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tricade_client import Classification, Detection, Result


def table_of(result: Result, title: str = "") -> Table:
    """A row for each detection, numbered as `annotated` numbers them; a column for each classifier."""
    rows = in_reading_order(result.detections)
    classifiers = list(rows[0].classes) if rows else []
    height, width = result.size
    table = Table(title=Text(f"{title}  {width} x {height}".strip()), title_justify="left", title_style="bold")
    table.add_column("#", justify="right", style="dim")
    table.add_column("label")
    table.add_column("score", justify="right")
    table.add_column("left, top, right, bottom", justify="right")
    for name in classifiers:
        table.add_column(Text(name), overflow="fold")
        table.add_column("score", justify="right")
    for number, found in enumerate(rows, start=1):
        box = ", ".join(f"{value:.0f}" for value in found.box)
        answers = [cell for name in classifiers for cell in _cells(found.classes[name])]
        table.add_row(str(number), Text(printable(found.label)), f"{found.score:.2f}", box, *answers)
    return table


def in_reading_order(detections: Sequence[Detection]) -> list[Detection]:
    """Lines from top to bottom, each from left to right, where all carry one label; else as they come, by score.

    A detection belongs to a line when its vertical centre lies above the bottom of all boxes in it.
    """
    if len({found.label for found in detections}) > 1:
        return list(detections)
    lines: list[list[Detection]] = []
    for found in sorted(detections, key=_centre_y):
        if lines and _centre_y(found) <= min(other.box[3] for other in lines[-1]):
            lines[-1].append(found)
        else:
            lines.append([found])
    return [found for line in lines for found in sorted(line, key=lambda found: found.box[0])]


def printable(text: str) -> str:
    """Without characters that would move the cursor or break a line."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _cells(answer: Classification) -> tuple[Text, str]:
    return (Text(printable(answer.label)), f"{answer.score:.2f}") if answer else (Text("-", "dim"), "")


def _centre_y(found: Detection) -> float:
    return (found.box[1] + found.box[3]) / 2
