"""The wire in both directions, pure: encoded images to request tensors, answer tensors to `Result`s."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput, ResultMismatch, TooLarge
from .results import Arrays, Result

# gRPC and Protobuf count a message's bytes in an int32; the rest of the request needs little.
MAX_MESSAGE_BYTES = 2**31 - 1
MAX_IMAGE_BYTES = MAX_MESSAGE_BYTES - 65536

# Tensors with a row per image, and the rest of their shape; all others have a row per detection.
_PER_IMAGE: dict[str, tuple[int, ...]] = {"COUNT": (), "TRUNCATED": (), "SIZE": (2,)}
_PER_DETECTION: dict[str, tuple[int, ...]] = {"BOXES": (4,), "CORNERS": (4, 2), "SCORES": (), "LABELS": ()}


@dataclass(frozen=True)
class Tensor:
    """An input as Triton names its type."""

    name: str
    dtype: str
    data: NDArray[Any]


@dataclass(frozen=True)
class Request:
    """One inference; no `outputs` stands for all of them."""

    model: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...] = ()


def request_from_images(
    model: str, images: Sequence[bytes], *, threshold: float | None = None, outputs: tuple[str, ...] = ()
) -> Request:
    """IMAGE BYTES [M], and THRESHOLD FP32 [1] where given; raises `TooLarge`."""
    _check_size([len(image) for image in images])
    data = np.empty(len(images), np.object_)
    data[:] = images
    inputs = [Tensor("IMAGE", "BYTES", data)]
    if threshold is not None:
        inputs.append(Tensor("THRESHOLD", "FP32", np.array([threshold], np.float32)))
    return Request(model, tuple(inputs), outputs)


def checked_threshold(threshold: float | None) -> float | None:
    """A score from 0 to 1, or None for the pipeline's own."""
    if threshold is None:
        return None
    if isinstance(threshold, (int, float, np.floating)) and 0 <= threshold <= 1:
        return float(threshold)
    raise BadInput(f"threshold: expected a score from 0 to 1, got {threshold!r}")


def checked_outputs(names: Iterable[str] | None) -> tuple[str, ...]:
    """Tensor names in capitals, with COUNT: without it the answer cannot be told apart by image."""
    if names is None:
        return ()
    if isinstance(names, str):
        raise BadInput(f"outputs: expected a list of tensor names, got the string {names!r}; write [{names!r}]")
    return tuple(dict.fromkeys(["COUNT", *(name.upper() for name in names)]))


def results_from_arrays(arrays: Arrays, *, images: int) -> list[Result]:
    """The answer to a request of so many images, one `Result` each; raises `ResultMismatch`."""
    rows = _checked_counts(arrays, images)
    _check_shapes(arrays, images=images, rows=sum(rows))
    starts = [sum(rows[:index]) for index in range(images)]
    return [
        Result(
            {
                name: array[index : index + 1] if name in _PER_IMAGE else array[start : start + count]
                for name, array in arrays.items()
            }
        )
        for index, (start, count) in enumerate(zip(starts, rows, strict=True))
    ]


def _check_size(sizes: Sequence[int]) -> None:
    total = sum(sizes) + 4 * len(sizes)  # each element is preceded by its length
    if total > MAX_IMAGE_BYTES:
        raise TooLarge(
            f"expected at most {MAX_IMAGE_BYTES} bytes of images in one request, got {total} in {len(sizes)}; "
            "send fewer at once, or smaller ones"
        )


def _checked_counts(arrays: Arrays, images: int) -> list[int]:
    count = arrays.get("COUNT")
    counts: list[int] = [] if count is None else count.tolist()
    if count is None or count.shape != (images,) or min(counts, default=0) < 0:
        raise ResultMismatch(f"COUNT: expected a count for each of {images} images, got {counts or 'none'}; {_ADVICE}")
    return counts


def _check_shapes(arrays: Arrays, *, images: int, rows: int) -> None:
    for name, array in arrays.items():
        expected = _expected_shape(name, array, images=images, rows=rows)
        if array.shape != expected:
            raise ResultMismatch(f"{name}: expected shape {list(expected)}, got {list(array.shape)}; {_ADVICE}")


def _expected_shape(name: str, array: NDArray[Any], *, images: int, rows: int) -> tuple[int, ...]:
    """A classifier's tensors are [rows, k] for any k; of tensors unknown here only the rows are known."""
    if name in _PER_IMAGE:
        return (images, *_PER_IMAGE[name])
    if name in _PER_DETECTION:
        return (rows, *_PER_DETECTION[name])
    if name.endswith(("_LABELS", "_SCORES")):
        return (rows, array.shape[1] if array.ndim > 1 else 1)
    return (rows, *array.shape[1:])


_ADVICE = "is this model a tricade pipeline, and the client as new as the server?"
