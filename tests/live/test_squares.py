"""The fixture cascade on the real server: known pictures, exactly known answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import cascade
import numpy as np
import pytest

from tricade_client import Result

BATCH = 8  # the classifier's max_batch


def check(result: Result, objects: list[cascade.Object], *, scale: int = 1) -> None:
    """The answer is exactly what is in the picture."""
    expected = cascade.expected(objects, scale=scale)
    arrays = result.arrays
    assert arrays["BOXES"] == pytest.approx(expected.boxes, abs=1e-3)
    assert arrays["BOXES"].shape == (len(expected.labels), 4)
    assert arrays["CORNERS"].shape == (len(expected.labels), 4, 2)
    assert arrays["SCORES"] == pytest.approx(expected.scores, abs=1e-4)
    assert tuple(found.label for found in result) == expected.labels
    assert tuple(found.classes["colour"].label for found in result) == expected.colours
    assert all(found.classes["colour"].score > 0.99 for found in result)
    assert result.truncated == expected.truncated
    assert result.size == (cascade.SIDE * scale, cascade.SIDE * scale)


@pytest.mark.parametrize("count", [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 5 * BATCH, 300, 301, 400])
def test_any_number_of_objects(squares, count):
    objects = cascade.objects(count, seed=count)
    check(squares.detect(cascade.picture(objects)), objects)


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "WEBP"])
def test_any_format(squares, form):
    objects = cascade.objects(5)
    lossless = cascade.picture(objects, form=form)
    result = squares.detect(lossless)
    assert [found.classes["colour"].label for found in result] == list(cascade.expected(objects).colours)


def test_twice_the_picture_has_twice_the_boxes(squares):
    objects = cascade.objects(30)
    check(squares.detect(cascade.picture(objects, scale=2)), objects, scale=2)


@pytest.mark.parametrize("counts", [[0], [0, 0], [3, 0, 5], [0, 20, 1, 0], [40, 40], [1, 2, 3, 4, 5, 6, 7, 8]])
def test_several_images_are_answered_as_single_ones_are(squares, counts):
    pictures = [cascade.objects(count, seed=index) for index, count in enumerate(counts)]
    results = squares.detect([cascade.picture(objects) for objects in pictures])
    assert len(results) == len(counts)
    for result, objects in zip(results, pictures, strict=True):
        check(result, objects)


def test_images_of_different_sizes_in_one_request(squares):
    small, large = cascade.objects(7, seed=1), cascade.objects(11, seed=2)
    first, second = squares.detect([cascade.picture(large, scale=3), cascade.picture(small)])
    check(first, large, scale=3)
    check(second, small)


def test_32_callers_get_their_own_answers(server):
    pictures = [cascade.objects(count % 23, seed=count) for count in range(192)]
    with server.client("squares") as client, ThreadPoolExecutor(32) as pool:
        results = list(pool.map(client.detect, [cascade.picture(objects) for objects in pictures]))
    for result, objects in zip(results, pictures, strict=True):
        check(result, objects)


def test_callers_are_served_in_shared_batches(server):
    """Crops of different requests meet in one execution of the network."""
    counts = ("nv_inference_request_success", "nv_inference_exec_count")
    before = [server.metric(name, "squares_colour") for name in counts]
    picture = cascade.picture(cascade.objects(2))
    with server.client("squares") as client, ThreadPoolExecutor(16) as pool:
        list(pool.map(client.detect, [picture] * 160))
    requests, executions = (
        server.metric(name, "squares_colour") - was for name, was in zip(counts, before, strict=True)
    )
    assert requests == 160
    assert executions < requests


@pytest.mark.parametrize("threshold", [0.9, 0.8, 0.76, 0.5])
def test_a_threshold_of_ones_own(squares, threshold):
    objects = cascade.objects(40)
    result = squares.detect(cascade.picture(objects), threshold=threshold)
    kept = cascade.expected(objects, threshold=threshold)
    assert result.arrays["SCORES"] == pytest.approx(kept.scores, abs=1e-4)


OUTPUTS = ["COUNT", "TRUNCATED", "SIZE", "BOXES", "CORNERS", "SCORES", "LABELS", "COLOUR_LABELS", "COLOUR_SCORES"]


@pytest.mark.parametrize("outputs", [*[[name] for name in OUTPUTS], OUTPUTS[:3], OUTPUTS[3:7], OUTPUTS[::-1]])
def test_every_subset_of_outputs_can_be_asked_for(server, outputs):
    objects = cascade.objects(BATCH + 3)
    with server.triton() as triton:
        whole = triton.ask("squares", [cascade.picture(objects)])
        some = triton.ask("squares", [cascade.picture(objects)], outputs=outputs)
    assert set(some) == set(outputs)
    for name in outputs:
        assert np.array_equal(some[name], whole[name])


def test_nothing_found_has_the_contract_s_ranks_and_types(server):
    with server.triton() as triton:
        arrays = triton.ask("squares", [cascade.picture(), cascade.picture()])
    assert {name: (array.dtype, array.shape) for name, array in arrays.items()} == {
        "COUNT": (np.int32, (2,)),
        "TRUNCATED": (np.int32, (2,)),
        "SIZE": (np.int32, (2, 2)),
        "BOXES": (np.float32, (0, 4)),
        "CORNERS": (np.float32, (0, 4, 2)),
        "SCORES": (np.float32, (0,)),
        "LABELS": (np.object_, (0,)),
        "COLOUR_LABELS": (np.object_, (0, 1)),
        "COLOUR_SCORES": (np.float32, (0, 1)),
    }
