"""`tricade_build.heads`: logits or probabilities to INDEX and SCORE, and the names of the classes."""

from __future__ import annotations

import graphs
import numpy as np
import pytest
from numpy.typing import NDArray

from tricade_build.errors import FoldError
from tricade_build.fold import Folded, Front, fold
from tricade_build.heads import HEADS, Want
from tricade_build.spec import Normalize

SIZE = (8, 16)
BLANK = np.zeros((2, *SIZE, 3), np.uint8)
ACTIVATIONS = {"softmax": "Softmax", "sigmoid": "Sigmoid", "ctc": "Softmax"}


def folded(head: str, value: NDArray[np.float32], *tail: str, top_k: int = 1, opset: int = 13) -> Folded:
    """A network that answers `value` whatever it sees, through the operators `tail`."""
    want = Want(top_k, any_width=False)
    front = Front("CROPS", SIZE, (), Normalize())
    model = graphs.answering(value, *tail, opset=opset)
    return fold(model, front, lambda nodes, raw: HEADS[head].end(nodes, raw, want))


def log(*shares: float) -> list[float]:
    return np.log(shares).tolist()


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("tail", ["none", "activation", "activation, identity"])
@pytest.mark.parametrize(
    ("head", "logits", "top_k", "index", "score"),
    [
        ("softmax", [7.0], 1, [0], [1]),
        ("softmax", log(0.2, 0.7, 0.1), 1, [1], [0.7]),
        ("softmax", log(0.2, 0.7, 0.1), 3, [1, 0, 2], [0.7, 0.2, 0.1]),
        ("softmax", log(0.5, 0.5), 2, [0, 1], [0.5, 0.5]),  # of equal ones the first
        ("sigmoid", [0.0], 1, [0], [0.5]),
        ("sigmoid", log(3, 1 / 3, 9), 2, [2, 0], [0.9, 0.75]),
        ("ctc", [log(0.25, 0.75)], 1, [1], [0.75]),
        ("ctc", [log(0.6, 0.3, 0.1), log(0.1, 0.1, 0.8), log(0.2, 0.5, 0.3)], 1, [0, 2, 1], [0.6, 0.8, 0.5]),
    ],
)
def test_head(
    head: str, logits: list[float], top_k: int, index: list[int], score: list[float], tail: str, opset: int
) -> None:
    ops = {"none": (), "activation": (ACTIVATIONS[head],), "activation, identity": (ACTIVATIONS[head], "Identity")}[
        tail
    ]
    value = np.array(logits, np.float32)

    made = folded(head, value, *ops, top_k=top_k, opset=opset)

    found = graphs.run(made.model, BLANK)
    assert (found["INDEX"].dtype, found["SCORE"].dtype) == (np.int32, np.float32)
    assert found["INDEX"].tolist() == [index, index]
    np.testing.assert_allclose(found["SCORE"], [score, score], rtol=1e-6)
    assert [(tensor.name, tensor.dims) for tensor in made.shapes.outputs] == [
        ("INDEX", (len(index),)),
        ("SCORE", (len(index),)),
    ]
    assert made.shapes.classes == value.shape[-1]


@pytest.mark.parametrize(
    ("head", "shape", "tail", "top_k", "said"),
    [
        ("softmax", (), (), 1, r"expected an output \[M, classes\].*found \[M\]"),
        ("softmax", (3, 1, 1), (), 1, r"\[M, classes\].*found \[M, 3, 1, 1\]"),
        ("softmax", (3,), ("Sigmoid",), 1, "ends in Softmax or in logits, found Sigmoid; try another head"),
        ("softmax", (3,), (), 4, "top_k of at most 3, the network's classes; got 4"),
        ("sigmoid", (3,), ("Softmax",), 1, "ends in Sigmoid or in logits, found Softmax"),
        ("ctc", (3,), (), 1, r"\[M, steps, characters\] \(head ctc\), found \[M, 3\]"),
        ("embedding", (3, 7, 7), (), 1, r"\[M, dimensions\], a vector \(head embedding\), found \[M, 3, 7, 7\]"),
    ],
)
def test_refuses_another_layout(
    head: str, shape: tuple[int, ...], tail: tuple[str, ...], top_k: int, said: str
) -> None:
    with pytest.raises(FoldError, match=said):
        folded(head, np.zeros(shape, np.float32), *tail, top_k=top_k)


@pytest.mark.parametrize(
    ("head", "labels", "classes", "names"),
    [
        ("softmax", (), 0, ()),
        ("softmax", ("a", "b"), 2, ("a", "b")),
        ("sigmoid", ("a", "b"), 2, ("a", "b")),
        ("ctc", (), 1, ("",)),
        ("ctc", ("a", "b"), 3, ("", "a", "b")),
        ("ctc", ("a", "b"), 4, ("", "a", "b", " ")),
    ],
)
def test_names(head: str, labels: tuple[str, ...], classes: int, names: tuple[str, ...]) -> None:
    assert HEADS[head].names(labels, classes) == names


@pytest.mark.parametrize(
    ("head", "labels", "classes", "said"),
    [
        ("softmax", (), 1, "expected 1 labels, as the network has 1 classes; got 0"),
        ("sigmoid", ("a", "b"), 3, "expected 3 labels.*got 2"),
        ("ctc", ("a", "b"), 2, r"expected 1 characters \(or 0, and a space\), as the head has 2 classes.*got 2"),
        ("ctc", ("a", "b"), 5, "expected 4 characters.*got 2"),
    ],
)
def test_refuses_another_number_of_labels(head: str, labels: tuple[str, ...], classes: int, said: str) -> None:
    with pytest.raises(FoldError, match=said):
        HEADS[head].names(labels, classes)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(3,), (3, 1, 1)])
@pytest.mark.parametrize(
    ("vector", "normalize", "expected"),
    [
        ([0, 0, 0], False, [0, 0, 0]),
        ([0, 0, 0], True, [0, 0, 0]),
        ([1, -2, 2], False, [1, -2, 2]),
        ([1, -2, 2], True, [1 / 3, -2 / 3, 2 / 3]),
        ([3000, 0, 4000], True, [0.6, 0, 0.8]),  # squares that half precision does not hold
    ],
)
def test_embedding(
    vector: list[float], normalize: bool, expected: list[float], shape: tuple[int, ...], dtype: type, opset: int
) -> None:
    model = graphs.answering(np.array(vector, dtype).reshape(shape), opset=opset)
    want = Want(1, any_width=False, normalize=normalize)

    made = fold(
        model, Front("CROPS", SIZE, (), Normalize()), lambda nodes, raw: HEADS["embedding"].end(nodes, raw, want)
    )

    found = graphs.run(made.model, BLANK)["EMBEDDING"]
    assert [(tensor.name, tensor.dtype, tensor.dims) for tensor in made.shapes.outputs] == [("EMBEDDING", "FP32", (3,))]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-5, atol=1e-7)


def test_a_head_takes_the_output_that_fits_among_several() -> None:
    """As image encoders are exported: every token's state beside the vector."""
    model = graphs.choosing({"tokens": np.ones((1, 5, 4), np.float32), "pooled": np.eye(4, dtype=np.float32)[:1]})
    want = Want(1, any_width=False)

    made = fold(
        model, Front("CROPS", SIZE, (), Normalize()), lambda nodes, raw: HEADS["embedding"].end(nodes, raw, want)
    )

    assert graphs.run(made.model, BLANK)["EMBEDDING"].tolist() == [[1, 0, 0, 0]] * 2
