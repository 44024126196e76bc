"""What a caller gets: a `Result` per image, `Detection`s in it, a `Classification` per classifier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import NotAsked

Arrays = Mapping[str, NDArray[Any]]
Point = tuple[float, float]

_NEEDED = ("LABELS", "SCORES", "BOXES", "CORNERS")


@dataclass(frozen=True)
class Classification:
    """A classifier's answer, best first in `top`; false, without name and score, where it does not apply."""

    label: str = ""
    score: float = 0.0
    top: tuple[tuple[str, float], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.top)


@dataclass(frozen=True)
class Detection:
    """One thing found; `box` is left, top, right, bottom and `corners` four (x, y), in the image's pixels.

    `classes` has an answer for each classifier, `embeddings` a vector (d,) for each that gives one.
    """

    label: str
    score: float
    box: tuple[float, float, float, float]
    corners: tuple[Point, Point, Point, Point]
    classes: Mapping[str, Classification] = field(default_factory=dict, hash=False)
    embeddings: Mapping[str, NDArray[np.float32]] = field(default_factory=dict, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, numbers in their shortest form."""
        return {
            "label": self.label,
            "score": _short(self.score),
            "box": [_short(value) for value in self.box],
            "corners": [[_short(x), _short(y)] for x, y in self.corners],
            "classes": {
                name: {
                    "label": answer.label,
                    "score": _short(answer.score),
                    "top": [[label, _short(score)] for label, score in answer.top],
                }
                for name, answer in self.classes.items()
            },
            "embeddings": {name: [_short(x) for x in vector] for name, vector in self.embeddings.items()},
        }


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What was found in one image; iterates over its detections, descending by score.

    `arrays` holds the raw tensors as if the image had been sent alone: COUNT [1], BOXES [n,4] and so on.
    """

    arrays: Arrays

    @property
    def size(self) -> tuple[int, int]:
        """Height, width in pixels, after EXIF rotation."""
        height, width = self._array("SIZE")[0].tolist()
        return height, width

    @property
    def truncated(self) -> int:
        """How many more were found than the pipeline's `max_detections`."""
        return int(self._array("TRUNCATED")[0])

    @cached_property
    def detections(self) -> tuple[Detection, ...]:
        """All detections; raises `NotAsked` where `outputs=` left out one of their parts."""
        return detections_from_arrays({**self.arrays, **{name: self._array(name) for name in _NEEDED}})

    def __iter__(self) -> Iterator[Detection]:
        return iter(self.detections)

    def __len__(self) -> int:
        return int(self._array("COUNT")[0])

    def __getitem__(self, index: int) -> Detection:
        return self.detections[index]

    def __repr__(self) -> str:
        return f"<Result: {len(self)} found>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        height, width = self.size
        return {
            "size": [height, width],
            "truncated": self.truncated,
            "detections": [detection.to_dict() for detection in self],
        }

    def _array(self, name: str) -> NDArray[Any]:
        try:
            return self.arrays[name]
        except KeyError:
            raise NotAsked(
                f"this result holds {', '.join(sorted(self.arrays))} and no {name}; add {name!r} to outputs="
            ) from None


def classifiers_in(names: Arrays) -> tuple[str, ...]:
    """The classifiers whose names and scores are both there, lowercase, sorted: servers keep no order."""
    stems = (name.removesuffix("_LABELS") for name in names if name.endswith("_LABELS"))
    return tuple(sorted(stem.lower() for stem in stems if f"{stem}_SCORES" in names))


def detections_from_arrays(arrays: Arrays) -> tuple[Detection, ...]:
    """LABELS [n], SCORES [n], BOXES [n,4], CORNERS [n,4,2] and each classifier's [n,k] or [n,d] to n detections."""
    answers = {
        name: _classifications(arrays[f"{name.upper()}_LABELS"], arrays[f"{name.upper()}_SCORES"])
        for name in classifiers_in(arrays)
    }
    vectors = {
        name.removesuffix("_EMBEDDING").lower(): array for name, array in arrays.items() if name.endswith("_EMBEDDING")
    }
    rows = zip(*(arrays[name].tolist() for name in _NEEDED), strict=True)
    return tuple(
        Detection(
            label=_text(label),
            score=score,
            box=tuple(box),
            corners=tuple((x, y) for x, y in corners),  # type: ignore[arg-type]
            classes={name: answer[row] for name, answer in answers.items()},
            embeddings={name: array[row] for name, array in sorted(vectors.items())},
        )
        for row, (label, score, box, corners) in enumerate(rows)
    )


def _classifications(labels: NDArray[Any], scores: NDArray[Any]) -> list[Classification]:
    return [
        _classification([_text(name) for name in names], row)
        for names, row in zip(labels.tolist(), scores.tolist(), strict=True)
    ]


def _classification(names: list[str], scores: list[float]) -> Classification:
    """Empty names of score 0 are no answers."""
    top = tuple((name, score) for name, score in zip(names, scores, strict=True) if name or score)
    return Classification(*top[0], top) if top else Classification()


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _short(value: float) -> float:
    """0.9 for the float32 that Python prints as 0.8999999761581421."""
    return float(str(np.float32(value)))
