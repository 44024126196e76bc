"""The client's wire, both directions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fake_transport import answer_of

from tricade_client import BadInput, Classification, NotAsked, ResultMismatch, TooLarge, codec
from tricade_client.codec import checked_outputs, checked_threshold, request_from_images, results_from_arrays

KIND = Classification("big", 0.75, (("big", 0.75), ("small", 0.25)))


@pytest.mark.parametrize(
    ("counts", "lefts"),
    [
        ([0], [[]]),
        ([2], [[0.0, 10.0]]),
        ([0, 3, 0, 1], [[], [0.0, 10.0, 20.0], [], [0.0]]),
    ],
)
def test_rows_go_to_their_images(counts, lefts):
    results = results_from_arrays(answer_of(*counts), images=len(counts))
    assert [[found.box[0] for found in result] for result in results] == lefts
    assert [len(result) for result in results] == counts
    assert [result.arrays["COUNT"].tolist() for result in results] == [[count] for count in counts]
    assert {result.size for result in results} == {(30, 40)}


def test_a_detection_is_plain_values():
    first, second = results_from_arrays(answer_of(2), images=1)[0]
    assert (first.label, first.score, first.box) == ("text", 1.0, (0.0, 0.0, 8.0, 4.0))
    assert first.corners == ((0.0, 0.0), (8.0, 0.0), (8.0, 4.0), (0.0, 4.0))
    assert first.classes == {"kind": KIND, "text": Classification("wörd 0", 0.5, (("wörd 0", 0.5),))}
    assert second.classes["kind"] == Classification("", 0.0, ())
    assert not second.classes["kind"]
    assert second.classes["text"]
    assert len({first, second}) == 2


def test_to_dict_is_json_with_short_numbers():
    (result,) = results_from_arrays(answer_of(2), images=1)
    said = json.loads(json.dumps(result.to_dict()))
    assert said["size"] == [30, 40]
    assert said["truncated"] == 0
    assert said["detections"][1] == {
        "label": "text",
        "score": 0.9,
        "box": [10.0, 10.0, 18.0, 14.0],
        "corners": [[10.0, 10.0], [18.0, 10.0], [18.0, 14.0], [10.0, 14.0]],
        "classes": {
            "kind": {"label": "", "score": 0.0, "top": []},
            "text": {"label": "wörd 1", "score": 0.5, "top": [["wörd 1", 0.5]]},
        },
        "embeddings": {},
    }


def test_embeddings_are_vectors():
    vectors = np.array([[0.5, 0.25], [1, 0]], np.float32)
    (result,) = results_from_arrays({**answer_of(2), "FACE_EMBEDDING": vectors}, images=1)
    assert [found.embeddings["face"].tolist() for found in result] == vectors.tolist()
    assert result.to_dict()["detections"][0]["embeddings"] == {"face": [0.5, 0.25]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"COUNT": None}, "COUNT: expected a count for each of 1 images, got none"),
        ({"COUNT": np.array([1, 1])}, r"COUNT: expected a count for each of 1 images, got \[1, 1\]"),
        ({"COUNT": np.array([-1])}, r"got \[-1\]"),
        ({"COUNT": np.array([3])}, r"expected shape \[3, 4\], got \[2, 4\]"),
        ({"SIZE": np.zeros((1, 3))}, r"SIZE: expected shape \[1, 2\], got \[1, 3\]"),
        ({"CORNERS": np.zeros((2, 8))}, r"CORNERS: expected shape \[2, 4, 2\], got \[2, 8\]"),
        ({"KIND_SCORES": np.zeros(2)}, r"KIND_SCORES: expected shape \[2, 1\], got \[2\]"),
        ({"EXTRA": np.zeros((5, 7))}, r"EXTRA: expected shape \[2, 7\], got \[5, 7\]"),
    ],
)
def test_an_answer_that_does_not_add_up(change, message):
    arrays = {name: array for name, array in (answer_of(2) | change).items() if array is not None}
    with pytest.raises(ResultMismatch, match=message):
        results_from_arrays(arrays, images=1)


def test_what_was_not_asked_for_is_named():
    (result,) = results_from_arrays({name: answer_of(1)[name] for name in ("COUNT", "BOXES")}, images=1)
    assert len(result) == 1
    assert result.arrays["BOXES"].tolist() == [[0, 0, 8, 4]]
    for read in (lambda: result.size, lambda: result.truncated, lambda: result[0], lambda: list(result)):
        with pytest.raises(NotAsked, match="holds BOXES, COUNT and no"):
            read()


def test_a_classifier_of_half_its_tensors_is_absent():
    arrays = {name: array for name, array in answer_of(1).items() if name != "KIND_SCORES"}
    assert list(results_from_arrays(arrays, images=1)[0][0].classes) == ["text"]


def test_request_tensors():
    request = request_from_images("text", [b"one", b"\0two\0"], threshold=0.25, outputs=("COUNT",))
    image, threshold = request.inputs
    assert (image.name, image.dtype, image.data.tolist()) == ("IMAGE", "BYTES", [b"one", b"\0two\0"])
    assert (threshold.name, threshold.dtype, threshold.data.tolist()) == ("THRESHOLD", "FP32", [0.25])
    assert len(request_from_images("text", [b"one"]).inputs) == 1


def test_too_large_a_request_is_not_sent(monkeypatch):
    monkeypatch.setattr(codec, "MAX_IMAGE_BYTES", 20)
    assert request_from_images("text", [b"123456", b"123456"])
    with pytest.raises(TooLarge, match="at most 20 bytes of images in one request, got 21 in 2; send fewer"):
        request_from_images("text", [b"123456", b"1234567"])


@pytest.mark.parametrize(("given", "sent"), [(None, None), (0, 0.0), (1, 1.0), (np.float32(0.5), 0.5)])
def test_thresholds(given, sent):
    assert checked_threshold(given) == sent


@pytest.mark.parametrize("given", [-0.1, 1.1, float("nan"), "0.5"])
def test_no_thresholds(given):
    with pytest.raises(BadInput, match="threshold: expected a score from 0 to 1"):
        checked_threshold(given)


@pytest.mark.parametrize(
    ("given", "asked"), [(None, ()), ([], ("COUNT",)), (["boxes", "COUNT", "BOXES"], ("COUNT", "BOXES"))]
)
def test_outputs(given, asked):
    assert checked_outputs(given) == asked


def test_outputs_are_a_list():
    with pytest.raises(BadInput, match=r"write \['BOXES'\]"):
        checked_outputs("BOXES")
