"""The networks themselves, asked without the pipeline: batches of every size, and several instances."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import cascade
import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

BATCH = 8  # max_batch of squares_colour
NAMES = list(cascade.COLOURS)


def crops_of(colours: list[str]) -> np.ndarray:
    """Crops of one colour each, (n, 16, 16, 3)."""
    return np.array([np.full((16, 16, 3), cascade.COLOURS[colour]) for colour in colours], np.uint8).reshape(
        -1, 16, 16, 3
    )


def colours_of(triton, model: str, colours: list[str]) -> list[str]:
    """What the network takes them for, by its own order of names."""
    answer = triton.send(model, {"CROPS": crops_of(colours)})
    assert answer["SCORE"].shape[0] == len(colours)
    return [NAMES[index] for index in answer["INDEX"].reshape(len(colours), -1)[:, 0]]


@pytest.mark.parametrize("count", [1, 2, BATCH - 1, BATCH])
def test_batches_up_to_the_largest(server, count):
    colours = [NAMES[index % len(NAMES)] for index in range(count)]
    with server.triton() as triton:
        assert colours_of(triton, "squares_colour", colours) == colours


@pytest.mark.parametrize(
    ("count", "message"),
    [(0, "Expected 768, got 0"), (BATCH + 1, r"batch-size must be <= 8")],  # Triton's own words
)
def test_other_batches_are_refused_and_hurt_nobody(server, count, message):
    with server.triton() as triton:
        with pytest.raises(InferenceServerException, match=message):
            triton.send("squares_colour", {"CROPS": crops_of((NAMES * 2)[:count])})
        assert colours_of(triton, "squares_colour", NAMES) == NAMES


def test_both_instances_of_a_network_answer_rightly(server):
    """`tiled_colour` has two: each is a process, and each gets its share of callers that come at once."""
    assert len(server.stubs("tiled_colour")) == 2
    wanted = [[NAMES[(seed + place) % len(NAMES)] for place in range(seed % 8 + 1)] for seed in range(160)]
    with server.triton() as triton, ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda colours: colours_of(triton, "tiled_colour", colours), wanted))
    assert found == wanted
