"""Several requests as one batch."""

from __future__ import annotations

import numpy as np
import pytest

from tricade.batch import run_together
from tricade.errors import StageError
from tricade.stage import Network


class Doubling(Network):
    """OUT = 2 × IN; notes the sizes it ran with and cannot do 13."""

    def __init__(self) -> None:
        self.ran: list[int] = []

    @classmethod
    def load(cls, spec):
        return cls()

    def run(self, inputs):
        self.ran.append(len(inputs["IN"]))
        if (inputs["IN"] == 13).any():
            raise RuntimeError("no thirteen")
        return {"OUT": inputs["IN"] * 2}


def request(*values: int, width: int = 1) -> dict[str, np.ndarray]:
    return {"IN": np.repeat(np.array(values)[:, None], width, axis=1)}


@pytest.mark.parametrize(
    ("requests", "runs"),
    [
        ([], []),
        ([request(1)], [1]),
        ([request(1, 2), request(3)], [3]),
        ([request(1), request(2, width=2), request(3)], [2, 1]),
    ],
)
def test_requests_of_one_shape_run_together(requests, runs):
    network = Doubling()
    answers = run_together(network, requests)
    assert network.ran == runs
    for given, answer in zip(requests, answers, strict=True):
        assert answer["OUT"].tolist() == (given["IN"] * 2).tolist()


def test_a_network_that_needs_no_joined_batch_gets_the_requests():
    taken = []

    class Gathering(Doubling):
        def run_all(self, requests):
            taken.append(len(requests))
            return [self.run(inputs) for inputs in requests]

    answers = run_together(Gathering(), [request(1), request(2, 3), request(4, width=2)])
    assert taken == [2, 1]
    assert [answer["OUT"].tolist() for answer in answers] == [[[2]], [[4], [6]], [[8, 8]]]


def test_one_that_fails_fails_alone():
    answers = run_together(Doubling(), [request(1), request(13), request(2)])
    assert answers[0]["OUT"].tolist() == [[2]]
    assert isinstance(answers[1], StageError)
    assert str(answers[1]) == "the network failed: no thirteen"
    assert answers[2]["OUT"].tolist() == [[4]]
