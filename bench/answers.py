"""What every contestant answers in the end, and whether two of them answer the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NEAR_PX = 1.0  # boxes may differ by a pixel: JSON shortens numbers
OVERLAP = 0.5  # intersection over union of what two libraries find


@dataclass(frozen=True)
class Answer:
    """The detections of one picture: `boxes` (n, 4) in its pixels, names in their order, by classifier the best."""

    boxes: NDArray[np.float32]
    labels: tuple[str, ...]
    classes: Mapping[str, tuple[str, ...]]


def answer_from(outputs: Mapping[str, Any]) -> Answer:
    """From the ensemble's outputs by name, arrays or the lists that JSON makes of them; rows beyond COUNT are none."""
    count = int(outputs["COUNT"][0])
    return Answer(
        boxes=np.asarray(outputs["BOXES"][:count], np.float32).reshape(-1, 4),
        labels=tuple(_text(name) for name in outputs["LABELS"][:count]),
        classes={
            name.removesuffix("_LABELS").lower(): tuple(_text(best) for best, *_ in names[:count])
            for name, names in outputs.items()
            if name.endswith("_LABELS")
        },
    )


def difference(found: Answer, wanted: Answer) -> str:
    """What is not the same in two answers to a picture, "" where nothing is."""
    if len(found.labels) != len(wanted.labels):
        return f"{len(found.labels)} detections instead of {len(wanted.labels)}"
    apart = np.abs(found.boxes - wanted.boxes).max(initial=0)
    if apart > NEAR_PX:
        return f"boxes {apart:.1f} pixels apart"
    names = {"label": (found.labels, wanted.labels)}
    names |= {name: (found.classes.get(name, ()), best) for name, best in wanted.classes.items()}
    return ", ".join(f"{name}: {_others(*pair)}" for name, pair in names.items() if pair[0] != pair[1])


def _others(found: tuple[str, ...], wanted: tuple[str, ...]) -> str:
    if len(found) != len(wanted):
        return "all others"
    return f"{sum(one != other for one, other in zip(found, wanted, strict=True))} others"


def text_difference(found: Answer, wanted: Answer) -> str:
    """For a library that finds lines in its own way: each wanted text must be read where it is, and no others."""
    missing = [
        text
        for box, text in zip(wanted.boxes, wanted.classes["text"], strict=True)
        if not any(text == other and _iou(box, where) >= OVERLAP for other, where in _texts(found))
    ]
    if missing:
        return f"{len(missing)} of {len(wanted.labels)} texts are others, {missing[0]!r} is one"
    return "" if len(found.labels) == len(wanted.labels) else f"{len(found.labels)} lines, not {len(wanted.labels)}"


def _texts(answer: Answer) -> list[tuple[str, NDArray[np.float32]]]:
    return list(zip(answer.classes["text"], answer.boxes, strict=True))


def _iou(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    shared = np.clip(np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]), 0, None).prod()
    return float(shared / ((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - shared))


def _text(name: bytes | str) -> str:
    return name.decode() if isinstance(name, bytes) else name
