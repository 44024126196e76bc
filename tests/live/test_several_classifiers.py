"""Classifiers side by side, some for one class only, one that gives vectors, on the real server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import cascade
import numpy as np
import pytest

from tricade_client import Result


def check(result: Result, objects: list[cascade.Object]) -> None:
    """Each classifier answers for its classes, and for no other."""
    expected = cascade.expected(objects, max_detections=400)
    assert result.arrays["BOXES"] == pytest.approx(expected.boxes, abs=1e-3)
    assert len(result) == len(objects)
    for found, label, colour in zip(result, expected.labels, expected.colours, strict=True):
        assert found.label == label
        assert found.classes["colour"].label == colour
        assert found.classes["warmth"].label == (colour if label == "warm" else "")
        assert found.classes["coolness"].label == (colour if label == "cool" else "")
        assert len(found.classes["warmth"].top) == (2 if label == "warm" else 0)
        assert bool(found.classes["coolness"]) == (label == "cool")
        look = found.embeddings["look"]  # the logits of the network that names colours
        assert look.shape == (len(cascade.COLOURS),)
        assert list(cascade.COLOURS)[look.argmax()] == colour if label == "cool" else not look.any()


def of_colours(count: int, colours: list[str]) -> list[cascade.Object]:
    return [
        cascade.Object(thing.row, thing.column, colours[index % len(colours)])
        for index, thing in enumerate(cascade.objects(count, seed=count))
    ]


WARM, COOL = list(cascade.WARM), list(cascade.COOL)


@pytest.mark.parametrize("count", [0, 1, 4, 5, 40, 400])
@pytest.mark.parametrize("colours", [WARM, COOL, WARM + COOL], ids=["warm", "cool", "both"])
def test_any_number_of_any_class(mixed, count, colours):
    objects = of_colours(count, colours)
    check(mixed.detect(cascade.picture(objects)), objects)


@pytest.mark.parametrize("counts", [[0, 0], [250, 250], [1, 0, 30], [400, 100, 0, 7]])
def test_several_images(mixed, counts):
    pictures = [of_colours(count, [WARM, COOL, WARM + COOL][index % 3]) for index, count in enumerate(counts)]
    for result, objects in zip(mixed.detect([cascade.picture(o) for o in pictures]), pictures, strict=True):
        check(result, objects)


def test_permuting_images_permutes_answers(mixed):
    pictures = [cascade.objects(count, seed=count) for count in (3, 0, 17, 60, 1)]
    order = np.random.default_rng(1).permutation(len(pictures))
    results = mixed.detect([cascade.picture(pictures[place]) for place in order])
    for result, place in zip(results, order, strict=True):
        check(result, pictures[place])


def test_what_else_is_in_a_batch_does_not_matter(server):
    """The same pictures alone, together, and among 16 callers."""
    pictures = [cascade.picture(cascade.objects(count, seed=count)) for count in (1, 9, 33, 4)]
    with server.client("mixed") as client, ThreadPoolExecutor(16) as pool:
        alone = [client.detect(picture) for picture in pictures]
        together = client.detect(pictures)
        among = list(pool.map(client.detect, pictures * 16))
    for index, result in enumerate([*together, *among]):
        expected = alone[index % len(pictures)]
        assert result.arrays.keys() == expected.arrays.keys()
        for name, array in result.arrays.items():
            if name.endswith(("SCORES", "_EMBEDDING")):
                assert array == pytest.approx(expected.arrays[name], rel=1e-5, abs=1e-5)
            else:
                assert np.array_equal(array, expected.arrays[name])


def test_branches_without_their_class_cost_one_blank_crop(server):
    """A call with warm things only: the other branch's network sees one crop, not none and not all."""
    objects = of_colours(3, WARM)
    counted = [f"mixed_{name}" for name in ("colour", "warmth", "coolness", "look")]
    with server.client("mixed") as client:
        before = [server.metric("nv_inference_count", model) for model in counted]
        check(client.detect(cascade.picture(objects)), objects)
        after = [server.metric("nv_inference_count", model) for model in counted]
    assert [new - old for new, old in zip(after, before, strict=True)] == [3, 3, 1, 1]
