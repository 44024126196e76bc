"""`label`: classes and indices to names, CTC steps to texts, every classifier's answers in order of detections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from .ctc import text_of
from .dispatch import Answers
from .errors import BadSettings, StageError
from .settings import groups_of, settings_from_parameters
from .stage import Arrays, Infer, ModelSpec, Stage


@dataclass(frozen=True)
class NoSettings:
    """All of this stage's parameters belong to a network."""


@dataclass(frozen=True)
class DetectorLabels:
    """`labels` is a file in the model's folder: one class a line."""

    labels: str


@dataclass(frozen=True)
class HeadLabels:
    """`head` says how the answers read. For names: `labels` is their file, `top_k` how many answers there are,
    those below `threshold` are left empty. For an embedding: `dim` is its length."""

    head: str
    labels: str = ""
    top_k: int = 1
    threshold: float = 0.0
    dim: int = 0

    def __post_init__(self) -> None:
        if self.head not in ("softmax", "sigmoid", "ctc", "embedding"):
            raise ValueError(f"parameter 'head' should be softmax, sigmoid, ctc or embedding, is {self.head!r}")
        if (self.head == "embedding") != (self.labels == "") or (self.head == "embedding") != (self.dim > 0):
            raise ValueError(f"head {self.head!r} needs {'dim' if self.head == 'embedding' else 'labels'} and no other")


@dataclass(frozen=True)
class Head:
    """A classifier's names (for CTC: its alphabet, the blank first)."""

    settings: HeadLabels
    names: tuple[str, ...]

    @cached_property
    def encoded(self) -> NDArray[np.object_]:
        return _encoded(self.names)


class Label(Stage):
    """CLASS [N] and the classifiers' answers to LABELS [N], `<C>_LABELS` and `<C>_SCORES` [N,k], or
    `<C>_EMBEDDING` [N,D]."""

    def __init__(self, classes: tuple[str, ...], heads: Mapping[str, Head]) -> None:
        self.classes, self.heads = classes, heads
        self._encoded = _encoded(classes)

    @classmethod
    def load(cls, spec: ModelSpec) -> Self:
        plain, groups = groups_of(spec.parameters)
        settings_from_parameters(NoSettings, plain, where=spec.name)
        detector = settings_from_parameters(DetectorLabels, groups.pop("detector", {}), where=f"{spec.name}: detector")
        settings = {
            name: settings_from_parameters(HeadLabels, group, where=f"{spec.name}: {name}")
            for name, group in groups.items()
        }
        heads = {
            name: Head(head, _names(spec.directory / head.labels) if head.labels else ())
            for name, head in settings.items()
        }
        return cls(_names(spec.directory / detector.labels), heads)

    def process(self, inputs: Arrays, infer: Infer) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        classes = inputs["CLASS"]
        outputs: dict[str, NDArray[Any]] = {"LABELS": _named(self._encoded, classes)}
        for name, head in self.heads.items():
            if head.settings.head == "embedding":
                outputs[f"{name.upper()}_EMBEDDING"] = _embeddings(head, name, inputs, len(classes))
                continue
            labels, scores = _answers(head, Answers.joined(name, inputs).of(len(classes)), len(classes))
            outputs |= {f"{name.upper()}_LABELS": labels, f"{name.upper()}_SCORES": scores}
        return outputs


def _answers(head: Head, answers: Answers, count: int) -> tuple[NDArray[np.object_], NDArray[np.float32]]:
    """Names and scores (count, k); rows without an answer have empty names and score 0."""
    if head.settings.head == "ctc":
        named, score = _texts(head, answers)
    else:
        named, score = _best(head, answers)
    if len(answers.rows) == count > 0:  # one for each, in their order
        return named, score
    labels = np.full((count, head.settings.top_k), b"", np.object_)
    scores = np.zeros((count, head.settings.top_k), np.float32)
    if len(answers.rows):
        labels[answers.rows], scores[answers.rows] = named, score
    return labels, scores


def _texts(head: Head, answers: Answers) -> tuple[NDArray[np.object_], NDArray[np.float32]]:
    """What steps read, and its mean score (r, 1)."""
    texts = np.empty((len(answers.rows), 1), np.object_)
    scores = np.empty((len(answers.rows), 1), np.float32)
    for row, (index, score) in enumerate(zip(answers.index, answers.score, strict=True)):
        text, scores[row, 0] = text_of(index, score, head.names)
        texts[row, 0] = text.encode()
    return texts, scores


def _best(head: Head, answers: Answers) -> tuple[NDArray[np.object_], NDArray[np.float32]]:
    """Names and scores (r, k); those below the threshold are none."""
    sure = answers.score >= head.settings.threshold
    if sure.all():
        return _named(head.encoded, answers.index), answers.score
    names = np.full(sure.shape, b"", np.object_)
    names[sure] = _named(head.encoded, answers.index[sure])
    return names, np.where(sure, answers.score, np.float32(0))


def _embeddings(head: Head, name: str, inputs: Arrays, count: int) -> NDArray[np.float32]:
    """Vectors (count, dim); zeros for rows without an answer."""
    answers = Answers.joined(name, inputs, ("EMBEDDING",)).of(count)
    vectors = np.zeros((count, head.settings.dim), np.float32)
    if len(answers.rows):
        vectors[answers.rows] = answers.values["EMBEDDING"]
    return vectors


def _encoded(names: Sequence[str]) -> NDArray[np.object_]:
    """Names as the bytes that leave the stage."""
    encoded = np.empty(len(names), np.object_)
    encoded[:] = [name.encode() for name in names]
    return encoded


def _named(names: NDArray[np.object_], index: NDArray[np.int32]) -> NDArray[np.object_]:
    """The name of each index."""
    try:
        return names[index.view(np.uint32)]  # what is negative becomes too large
    except IndexError:
        wrong = index[(index < 0) | (index >= len(names))][0]
        raise StageError(f"the network answered class {wrong}, there are names for 0 to {len(names) - 1}") from None


def _names(file: Path) -> tuple[str, ...]:
    try:
        text = file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{file} should hold one name a line in UTF-8: {error}") from error
    return tuple(text.removesuffix("\n").split("\n"))
