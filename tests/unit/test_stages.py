"""The stages by hand: what they say, what they send on, what they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tricade.crop import Crop
from tricade.dispatch import sent_of
from tricade.errors import BadImage, BadRequest, BadSettings, FrameLost, StageError
from tricade.frames import FRAME
from tricade.label import Label
from tricade.preprocess import Preprocess
from tricade.stage import Arrays, Call, ModelSpec
from tricade.turn import Turn


def spec(parameters: dict[str, str], directory: Path = Path()) -> ModelSpec:
    return ModelSpec("a_stage", directory, 1, parameters, (), (), 0, 1)


def no_calls(calls: Sequence[Call]) -> list[Arrays]:
    assert not calls
    return []


def png(image: Image.Image) -> bytes:
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def frame(outputs: Arrays) -> Arrays:
    """What `preprocess` tells `crop`."""
    return FRAME.unpack(outputs["FRAME"])


def sent(outputs: Arrays, classifier: str) -> Arrays:
    """What `crop` or `turn` tells `label`."""
    packet = sent_of(classifier)
    return packet.unpack(outputs[packet.tensor])


PREPROCESS = {
    "size": "32,64",
    "resize": "letterbox",
    "pad": "114",
    "max_images": "3",
    "max_bytes": "100000",
    "max_pixels": "10000",
    "ring_bytes": "30000",
    "ring_slots": "4",
}


@pytest.fixture
def preprocess():
    stage = Preprocess.load(spec(PREPROCESS))
    yield stage
    stage.close()


def images(*pictures: Image.Image | bytes) -> dict[str, np.ndarray]:
    data = [picture if isinstance(picture, bytes) else png(picture) for picture in pictures]
    return {"IMAGE": np.array([*data, None], np.object_)[:-1]}


def test_preprocess_keeps_differently_sized_pictures_apart(preprocess):
    outputs = preprocess.process(images(Image.new("RGB", (64, 32), "red"), Image.new("RGB", (1, 1), "blue")), no_calls)
    assert outputs["SIZE"].tolist() == [[32, 64], [1, 1]]
    assert outputs["TENSOR"].shape == (2, 32, 64, 3)
    assert (outputs["TENSOR"][0] == [255, 0, 0]).all()
    assert outputs["TENSOR"][1, 0, [0, 15, 16, 47, 48]].tolist() == [
        [114] * 3, [114] * 3, [0, 0, 255], [0, 0, 255], [114] * 3,
    ]  # fmt: skip
    assert (frame(outputs)["HANDLES"][:, 0] > 0).all()
    assert frame(outputs)["PIXELS"].shape == (0,)


def test_preprocess_sends_inline_what_finds_no_place(preprocess):
    small, large = Image.new("RGB", (10, 10), "red"), Image.new("RGB", (100, 100), "blue")
    found = frame(preprocess.process(images(large, small, large), no_calls))
    assert (found["HANDLES"][:, 0] > 0).tolist() == [True, False, False]
    assert found["HANDLES"][1:, 3].tolist() == [0, 300]
    assert found["PIXELS"].shape == (300 + 30_000,)
    assert found["PIXELS"][:3].tolist() == [255, 0, 0]
    assert found["PIXELS"][300:303].tolist() == [0, 0, 255]


def test_a_picture_that_cannot_be_decoded_leaves_no_places_taken(preprocess):
    """Neither its own nor those of the pictures before it: only four calls' worth of slots are there."""
    good = Image.effect_noise((40, 40), 50).convert("RGB")
    file = BytesIO()
    good.save(file, "JPEG")
    for _ in range(6):
        with pytest.raises(BadImage, match="image 1: cannot be decoded: image file is truncated"):
            preprocess.process(images(good, file.getvalue()[:-200]), no_calls)
    outputs = preprocess.process(images(good, file.getvalue()), no_calls)
    assert (frame(outputs)["HANDLES"][:, 0] > 0).all()


def test_preprocess_cuts_large_pictures_into_tiles():
    stage = Preprocess.load(spec(PREPROCESS | {"tile": "32,64", "overlap": "0.25", "max_tiles": "8"}))
    left, right = Image.new("RGB", (80, 32), "red"), Image.new("RGB", (10, 10), "blue")
    left.paste((0, 255, 0), (40, 0, 80, 32))
    outputs = stage.process(images(left, right), no_calls)
    assert frame(outputs)["TILES"].tolist() == [
        [0, 0, 0, 80, 32], [0, 0, 0, 64, 32], [0, 16, 0, 80, 32], [1, 0, 0, 10, 10],
    ]  # fmt: skip
    assert outputs["SIZE"].tolist() == [[32, 80], [10, 10]]
    assert outputs["TENSOR"].shape == (4, 32, 64, 3)
    assert outputs["TENSOR"][1, 0, [0, 39, 40, 63]].tolist() == [[255, 0, 0]] * 2 + [[0, 255, 0]] * 2
    assert outputs["TENSOR"][2, 0, [0, 23, 24, 63]].tolist() == [[255, 0, 0]] * 2 + [[0, 255, 0]] * 2
    with pytest.raises(BadRequest, match="expected at most 8 tiles in a request, got 9 of 3 images"):
        stage.process(images(left, left, left), no_calls)
    stage.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (images(), "IMAGE: expected 1 to 3 encoded images, got shape [0]; split the list into several requests"),
        (images(*[b"x"] * 4), "IMAGE: expected 1 to 3 encoded images, got shape [4]; split the list"),
        (images(Image.new("RGB", (1, 1)), b"no"), "image 1: expected JPEG, PNG, WebP, BMP or TIFF, got 2 bytes"),
        (images(Image.new("RGB", (101, 100))), "image 0: expected at most 10000 pixels, got 101 x 100"),
    ],
)
def test_preprocess_refuses(preprocess, given, message):
    with pytest.raises(BadRequest) as caught:
        preprocess.process(given, no_calls)
    assert message in str(caught.value)


def test_without_room_in_shared_memory_pictures_travel_inline_and_the_log_says_why():
    stage = Preprocess.load(spec(PREPROCESS | {"ring_bytes": str(2**62)}))
    outputs = stage.process(images(Image.new("RGB", (2, 2), "red")), no_calls)
    assert frame(outputs)["HANDLES"].tolist() == [[0, 0, 0, 0, 2, 2]]
    assert "--shm-size" in stage.warnings[0]


def test_preprocess_keeps_what_came_and_decoded_where_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("TRICADE_SAMPLES", str(tmp_path))
    monkeypatch.setenv("TRICADE_SAMPLE_EVERY", "2")
    stage = Preprocess.load(spec(PREPROCESS))
    pictures = [png(Image.new("L", (3, 3), grey)) for grey in range(5)]
    stage.process(images(*pictures[:3]), no_calls)
    with pytest.raises(BadRequest):
        stage.process(images(b"no picture"), no_calls)
    stage.process(images(*pictures[3:]), no_calls)
    stage.close()
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == sorted([pictures[1], pictures[3]])


CROP = {"family": "candidates", "size": "100,100", "resize": "stretch", "threshold": "0.5", "iou": "0.5"}
COLOUR = {"model": "p_colour", "size": "4,4", "resize": "stretch", "pad": "0", "max_batch": "2"}
CROP |= {"max_detections": "5"} | {f"colour.{name}": value for name, value in COLOUR.items()}

# Two classes at known places of a 100 × 100 picture, below the threshold, and a duplicate.
FOUND = [
    (10, 10, 20, 20, 0.9, 0),
    (50, 50, 60, 60, 0.8, 1),
    (50, 50, 61, 60, 0.7, 1),
    (80, 80, 90, 90, 0.6, 0),
    (0, 80, 10, 90, 0.4, 0),
]


def inline(*pictures: np.ndarray, **other: np.ndarray) -> dict[str, np.ndarray]:
    """A packet of pictures that travel in it; `other` arrays take the place of those that belong to them."""
    offsets = np.cumsum([0, *[picture.size for picture in pictures]])
    frames = [(0, 0, 0, offset, *picture.shape[:2]) for offset, picture in zip(offsets, pictures, strict=False)]
    pixels = np.concatenate([picture.reshape(-1) for picture in pictures])
    tiles = [(index, 0, 0, picture.shape[1], picture.shape[0]) for index, picture in enumerate(pictures)]
    arrays = {
        "HANDLES": np.array(frames, np.int64),
        "PIXELS": pixels,
        "TILES": np.array(tiles, np.int32),
        "MIN_SCORE": np.empty(0, np.float32),
    }
    return {"FRAME": FRAME.pack(arrays | other)}


def candidates(*per_image: Sequence[tuple[float, ...]]) -> dict[str, np.ndarray]:
    table = np.zeros((len(per_image), 6, 6), np.float32)
    for image, rows in enumerate(per_image):
        table[image, : len(rows)] = np.array(rows, np.float32).reshape(-1, 6)
    return {"CANDIDATES": table}


def painted() -> np.ndarray:
    picture = np.zeros((100, 100, 3), np.uint8)
    picture[10:20, 10:20] = 50
    picture[50:60, 50:60] = 100
    picture[80:90, 80:90] = 150
    return picture


def echo(calls: Sequence[Call]) -> list[Arrays]:
    """A classifier whose index is the crop's first pixel."""
    first = [call.inputs["CROPS"][:, 0, 0, :1] for call in calls]
    return [{"INDEX": value.astype(np.int32), "SCORE": value.astype(np.float32) / 255} for value in first]


def test_crop_finds_nothing_and_still_gives_the_network_a_crop():
    outputs = Crop.load(spec(CROP)).process(inline(painted()) | candidates([]), no_calls)
    assert outputs["COUNT"].tolist() == [0]
    assert outputs["BOXES"].shape == (0, 4)
    assert outputs["CORNERS"].shape == (0, 4, 2)
    assert outputs["SCORES"].dtype == np.float32
    assert outputs["CLASS"].shape == (0,)
    assert outputs["COLOUR_CROPS"].shape == (1, 4, 4, 3)
    assert sent(outputs, "colour")["ROWS"].shape == (0,)
    assert sent(outputs, "colour")["REST_INDEX"].shape == (0, 0)


def test_crop_sends_the_first_batch_along_and_calls_for_the_rest():
    outputs = Crop.load(spec(CROP)).process(inline(painted()) | candidates(FOUND), echo)
    assert outputs["COUNT"].tolist() == [3]
    assert outputs["TRUNCATED"].tolist() == [0]
    assert outputs["BOXES"].tolist() == [[10, 10, 20, 20], [50, 50, 60, 60], [80, 80, 90, 90]]
    assert outputs["CORNERS"][0].tolist() == [[10, 10], [20, 10], [20, 20], [10, 20]]
    assert outputs["SCORES"].tolist() == pytest.approx([0.9, 0.8, 0.6])
    assert outputs["CLASS"].tolist() == [0, 1, 0]
    assert outputs["COLOUR_CROPS"][:, 2, 2, 0].tolist() == [50, 100]
    told = sent(outputs, "colour")
    assert (told["ROWS"].tolist(), told["REST_ROWS"].tolist()) == ([0, 1], [2])
    assert told["REST_INDEX"].tolist() == [[150]]


def test_boxes_partly_outside_are_clipped_and_those_outside_are_none():
    rows = [(-10, -10, 20, 20, 0.9, 0), (90, 90, 130, 95, 0.8, 0), (100, 40, 120, 60, 0.7, 0), (5, -30, 9, -1, 0.6, 0)]
    outputs = Crop.load(spec(CROP)).process(inline(painted()) | candidates(rows), no_calls)
    assert outputs["BOXES"].tolist() == [[0, 0, 20, 20], [90, 90, 100, 95]]
    assert outputs["CORNERS"][1].tolist() == [[90, 90], [100, 90], [100, 95], [90, 95]]
    assert outputs["TRUNCATED"].tolist() == [0]


def test_crop_keeps_images_apart_and_scales_back():
    large = np.kron(painted(), np.ones((2, 3, 1), np.uint8))  # 200 high, 300 wide
    given = inline(painted(), large) | candidates(FOUND[:1], FOUND[3:4])
    outputs = Crop.load(spec(CROP)).process(given, no_calls)
    assert outputs["COUNT"].tolist() == [1, 1]
    assert outputs["BOXES"].tolist() == [[10, 10, 20, 20], [240, 160, 270, 180]]
    assert outputs["COLOUR_CROPS"][:, 2, 2, 0].tolist() == [50, 150]


def test_crop_caps_and_says_how_many_it_dropped():
    rows = [(10 * i, 0, 10 * i + 5, 5, 0.9 - i / 100, 0) for i in range(6)]
    outputs = Crop.load(spec(CROP | {"max_detections": "4"})).process(inline(painted()) | candidates(rows), echo)
    assert outputs["COUNT"].tolist() == [4]
    assert outputs["TRUNCATED"].tolist() == [2]


def test_crop_filters_by_class():
    outputs = Crop.load(spec(CROP | {"colour.classes": "1"})).process(inline(painted()) | candidates(FOUND), no_calls)
    assert sent(outputs, "colour")["ROWS"].tolist() == [1]
    assert outputs["COLOUR_CROPS"][:, 2, 2, 0].tolist() == [100]


@pytest.mark.parametrize(("threshold", "count"), [([0.85], 1), ([0.3], 4), ([0.0], 4)])
def test_a_request_may_bring_its_own_threshold(threshold, count):
    given = inline(painted(), MIN_SCORE=np.array(threshold, np.float32)) | candidates(FOUND)
    assert Crop.load(spec(CROP)).process(given, echo)["COUNT"].tolist() == [count]


@pytest.mark.parametrize("threshold", [[], [0.1, 0.2], [1.5], [float("nan")]])
def test_a_threshold_that_is_none_is_refused(preprocess, threshold):
    given = images(Image.new("RGB", (1, 1))) | {"THRESHOLD": np.array(threshold, np.float32)}
    with pytest.raises(BadRequest, match="THRESHOLD: expected one number from 0 to 1"):
        preprocess.process(given, no_calls)


@pytest.mark.parametrize("threshold", [None, 0.0, 0.5, 1.0])
def test_a_threshold_passes_through(preprocess, threshold):
    given = images(Image.new("RGB", (1, 1)))
    if threshold is not None:
        given["THRESHOLD"] = np.array([threshold], np.float32)
    found = frame(preprocess.process(given, no_calls))["MIN_SCORE"]
    assert found.tolist() == ([] if threshold is None else [threshold])


def test_a_stale_handle_is_an_error():
    given = inline(np.zeros((2, 2, 3), np.uint8), HANDLES=np.array([[77, 0, 1, 0, 2, 2]])) | candidates([])
    with pytest.raises(FrameLost, match="the process that decoded the picture is gone"):
        Crop.load(spec(CROP)).process(given, no_calls)


HANDLE = [0, 0, 0, 0, 100, 100]
TILE = [0, 0, 0, 100, 100]


@pytest.mark.parametrize(
    ("arrays", "error"),
    [
        ({"TILES": [TILE, TILE]}, BadRequest),
        ({"TILES": []}, BadRequest),
        ({"TILES": [[1, 0, 0, 100, 100]]}, BadRequest),
        ({"TILES": [[-1, 0, 0, 100, 100]]}, BadRequest),
        ({"TILES": [[0, 0, 0, 101, 100]]}, BadRequest),
        ({"TILES": [[0, 50, 0, 50, 100]]}, BadRequest),
        ({"TILES": [[0, -1, 0, 50, 100]]}, BadRequest),
        ({"HANDLES": []}, BadRequest),
        ({"HANDLES": [HANDLE, HANDLE]}, BadRequest),
        ({"HANDLES": [[0, 0, 0, 1, 100, 100]]}, FrameLost),
        ({"HANDLES": [[0, 0, 0, -1, 100, 100]]}, FrameLost),
        ({"HANDLES": [[0, 0, 0, 0, 100, 0]]}, FrameLost),
    ],
)
def test_crop_refuses_what_preprocess_would_not_say(arrays, error):
    sides = {"TILES": (5, np.int32), "HANDLES": (6, np.int64)}
    forged = {name: np.array(rows, sides[name][1]).reshape(-1, sides[name][0]) for name, rows in arrays.items()}
    with pytest.raises(error):
        Crop.load(spec(CROP)).process(inline(painted(), **forged) | candidates(FOUND), no_calls)


def test_crop_packs_crops_of_their_own_widths_for_turn():
    line = {"model": "p_line", "size": "10,20", "resize": "pad", "pad": "9", "max_batch": "2", "packed": "true"}
    settings = {name: value for name, value in CROP.items() if "." not in name}
    settings |= {f"line.{name}": value for name, value in line.items()} | {"line.widths": "20,40"}
    rows = [(0, 0, 30, 10, 0.9, 0), (0, 50, 5, 60, 0.8, 0), (0, 70, 100, 80, 0.7, 0)]
    outputs = Crop.load(spec(settings)).process(inline(painted()) | candidates(rows), no_calls)
    assert outputs["LINE_WIDTHS"].tolist() == [30, 5, 40]
    assert outputs["LINE_PACKED"].shape == ((30 + 5 + 40) * 10 * 3,)
    assert outputs["LINE_PACKED_ROWS"].tolist() == [0, 1, 2]


def test_tiles_of_one_picture_are_put_together():
    """A thing in the overlap of two tiles is found twice, one cut by a border once whole and once in part."""
    picture = np.zeros((100, 200, 3), np.uint8)
    picture[20:40, 60:80] = 50
    tiles = [(0, 0, 0, 100, 100), (0, 60, 0, 160, 100), (0, 100, 0, 200, 100)]
    found = candidates(
        [(60, 20, 80, 40, 0.8, 0), (90, 50, 100, 60, 0.6, 0)],
        [(0, 20, 20, 40, 0.9, 0), (30, 50, 60, 60, 0.7, 0)],
        [(0, 0, 10, 10, 0.5, 0)],
    )
    outputs = Crop.load(spec(CROP)).process(inline(picture, TILES=np.array(tiles, np.int32)) | found, echo)
    assert outputs["COUNT"].tolist() == [3]
    assert outputs["BOXES"].tolist() == [[60, 20, 80, 40], [90, 50, 120, 60], [100, 0, 110, 10]]
    assert outputs["SCORES"].tolist() == pytest.approx([0.9, 0.7, 0.5])
    assert outputs["COLOUR_CROPS"][0, 2, 2].tolist() == [50, 50, 50]


@pytest.mark.parametrize(("min_size", "count"), [("0", 3), ("10", 3), ("10.5", 0)])
def test_small_things_can_be_left_out(min_size, count):
    outputs = Crop.load(spec(CROP | {"min_size": min_size})).process(inline(painted()) | candidates(FOUND), echo)
    assert outputs["COUNT"].tolist() == [count]


def test_a_crop_may_show_the_surroundings():
    """A box of 10 pixels with half of its side around it: 5 pixels of ground on each side."""
    settings = CROP | {"colour.padding": "0.5", "colour.size": "20,20"}
    crop = Crop.load(spec(settings)).process(inline(painted()) | candidates(FOUND[:1]), no_calls)["COLOUR_CROPS"][0]
    assert crop[:, :, 0].tolist() == np.pad(np.full((10, 10), 50), 5).tolist()


def test_a_letterboxed_crop_keeps_its_aspect():
    settings = CROP | {"colour.resize": "letterbox", "colour.pad": "7", "colour.size": "20,20"}
    wide = candidates([(10, 10, 20, 15, 0.9, 0)])
    crop = Crop.load(spec(settings)).process(inline(painted()) | wide, no_calls)["COLOUR_CROPS"][0]
    assert crop[:, :, 0].tolist() == np.pad(np.full((10, 20), 50), ((5, 5), (0, 0)), constant_values=7).tolist()


TURN = {"classifier": "line", "upright": "side", "turned": "1", "threshold": "0.9", "model": "p_line"}
TURN |= {"size": "2,4", "pad": "9", "max_batch": "2", "widths": "4,8"}


def packed(*crops: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "LINE_PACKED": np.concatenate([np.empty(0, np.uint8), *[crop.reshape(-1) for crop in crops]]),
        "LINE_WIDTHS": np.array([crop.shape[1] for crop in crops], np.int32),
        "LINE_PACKED_ROWS": np.arange(len(crops), dtype=np.int32),
    }


def answered(
    name: str, index: list[list[int]], score: list[list[float]], rest: int = 0, rows: list[int] | None = None
) -> dict[str, np.ndarray]:
    """Answers of which the last `rest` came by calls, to the first detections or to `rows`; a blank's answer follows
    the edge's."""
    columns = max([len(row) for row in index], default=1)
    table = np.array(index, np.int32).reshape(-1, columns)
    scores = np.array(score, np.float32).reshape(-1, columns)
    edge, every = len(table) - rest, np.arange(len(table), dtype=np.int32) if rows is None else np.array(rows, np.int32)
    blank = np.full((1, columns), 1, np.int32)
    told = {"ROWS": every[:edge], "REST_ROWS": every[edge:], "REST_INDEX": table[edge:], "REST_SCORE": scores[edge:]}
    return {
        f"{name}_INDEX": np.concatenate([table[:edge], blank]),
        f"{name}_SCORE": np.concatenate([scores[:edge], blank.astype(np.float32)]),
        f"{name}_SENT": sent_of(name).pack(told),
    }


def test_turn_of_nothing_sends_a_blank():
    outputs = Turn.load(spec(TURN)).process(packed() | answered("SIDE", [], []), no_calls)
    assert outputs["LINE_CROPS"].tolist() == np.full((1, 2, 4, 3), 9).tolist()
    assert sent(outputs, "line")["ROWS"].shape == (0,)


def test_turn_turns_what_is_surely_upside_down():
    crop = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    answers = answered("SIDE", [[1], [1]], [[0.95], [0.85]])
    outputs = Turn.load(spec(TURN)).process(packed(crop, crop) | answers, no_calls)
    first, second = outputs["LINE_CROPS"]
    assert first[:, :3].tolist() == crop[::-1, ::-1].tolist()
    assert second[:, :3].tolist() == crop.tolist()
    assert (first[:, 3:] == 9).all()
    assert sent(outputs, "line")["ROWS"].tolist() == [0, 1]


def test_turn_believes_answers_that_came_by_calls_and_calls_for_its_own_rest():
    crops = [np.full((2, width, 3), value, np.uint8) for value, width in ((1, 3), (2, 8), (3, 4))]
    crops[2][0, 0] = 77
    answers = answered("SIDE", [[0], [0], [1]], [[1.0], [1.0], [1.0]], rest=1)
    called: list[Call] = []

    def infer(calls: Sequence[Call]) -> list[Arrays]:
        called.extend(calls)
        return [
            {"INDEX": np.full((len(c.inputs["CROPS"]), 2), 5, np.int32), "SCORE": np.ones((1, 2), np.float32)}
            for c in calls
        ]

    settings = TURN | {"max_batch": "1"}
    outputs = Turn.load(spec(settings)).process(packed(*crops) | answers, infer)
    assert outputs["LINE_CROPS"].shape == (1, 2, 8, 3)
    assert sent(outputs, "line")["ROWS"].tolist() == [1]
    assert [call.inputs["CROPS"].shape for call in called] == [(1, 2, 4, 3)] * 2
    assert sent(outputs, "line")["REST_ROWS"].tolist() == [0, 2]
    assert called[1].inputs["CROPS"][0, 1, 3].tolist() == [77, 77, 77]


@pytest.fixture
def label(tmp_path: Path) -> Label:
    (tmp_path / "detector.txt").write_text("cat\ndog\n")
    (tmp_path / "colour.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "line.txt").write_text("\na\nb\n \n")
    settings = {"detector.labels": "detector.txt"}
    settings |= {"colour.head": "softmax", "colour.labels": "colour.txt", "colour.top_k": "2"}
    settings |= {"line.head": "ctc", "line.labels": "line.txt", "line.top_k": "1"}
    return Label.load(spec(settings, tmp_path))


def test_label_of_nothing_has_the_right_ranks(label):
    given = {"CLASS": np.empty(0, np.int32)} | answered("COLOUR", [], []) | answered("LINE", [], [])
    outputs = label.process(given, no_calls)
    assert {name: array.shape for name, array in outputs.items()} == {
        "LABELS": (0,), "COLOUR_LABELS": (0, 2), "COLOUR_SCORES": (0, 2), "LINE_LABELS": (0, 1), "LINE_SCORES": (0, 1),
    }  # fmt: skip
    assert outputs["LABELS"].dtype == np.object_


def test_label_joins_in_order_and_leaves_empty_what_was_not_asked(label):
    colour = answered("COLOUR", [[2, 0], [1, 2]], [[0.7, 0.2], [0.9, 0.1]], rest=1, rows=[2, 0])
    line = answered("LINE", [[1, 0, 2], [0, 0, 0]], [[0.5, 1, 1.0], [1, 1, 1]], rows=[1, 2])
    outputs = label.process({"CLASS": np.array([1, 0, 1], np.int32)} | colour | line, no_calls)
    assert outputs["LABELS"].tolist() == [b"dog", b"cat", b"dog"]
    assert outputs["COLOUR_LABELS"].tolist() == [[b"green", b"blue"], [b"", b""], [b"blue", b"red"]]
    assert outputs["COLOUR_SCORES"] == pytest.approx(np.array([[0.9, 0.1], [0, 0], [0.7, 0.2]]))
    assert outputs["LINE_LABELS"].tolist() == [[b""], [b"ab"], [b""]]
    assert outputs["LINE_SCORES"] == pytest.approx(np.array([[0], [0.75], [0]]))


def test_label_leaves_out_what_is_below_a_heads_threshold(tmp_path):
    (tmp_path / "d.txt").write_text("cat\n")
    (tmp_path / "tags.txt").write_text("old\nred\n")
    settings = {"detector.labels": "d.txt", "tags.head": "sigmoid", "tags.labels": "tags.txt"}
    stage = Label.load(spec(settings | {"tags.top_k": "2", "tags.threshold": "0.5"}, tmp_path))
    given = {"CLASS": np.zeros(2, np.int32)} | answered("TAGS", [[1, 0], [0, 1]], [[0.9, 0.5], [0.4, 0.1]])
    outputs = stage.process(given, no_calls)
    assert outputs["TAGS_LABELS"].tolist() == [[b"red", b"old"], [b"", b""]]
    assert outputs["TAGS_SCORES"] == pytest.approx(np.array([[0.9, 0.5], [0, 0]]))


@pytest.mark.parametrize("count", [0, 3])
def test_label_hands_on_embeddings(tmp_path, count):
    (tmp_path / "d.txt").write_text("cat\n")
    stage = Label.load(spec({"detector.labels": "d.txt", "face.head": "embedding", "face.dim": "2"}, tmp_path))
    told = {
        "ROWS": np.arange(2, dtype=np.int32)[:count],
        "REST_ROWS": np.empty(0, np.int32),
        "REST_EMBEDDING": np.empty((0, 0), np.float32),
    }
    given = {
        "CLASS": np.zeros(count, np.int32),
        "FACE_EMBEDDING": np.array([[1, 2], [3, 4]], np.float32)[: max(1, count)],
        "FACE_SENT": sent_of("face", ("EMBEDDING",)).pack(told),
    }
    outputs = stage.process(given, no_calls)
    assert outputs["FACE_EMBEDDING"].tolist() == [[1, 2], [3, 4], [0, 0]][:count]
    assert outputs["FACE_EMBEDDING"].shape == (count, 2)


@pytest.mark.parametrize("rows", [[3], [-1]])
def test_label_refuses_answers_about_nothing(label, rows):
    colour = answered("COLOUR", [[0, 1]], [[0.9, 0.1]], rows=rows)
    with pytest.raises(BadRequest, match="expected answers about 1 detections"):
        label.process({"CLASS": np.zeros(1, np.int32)} | colour | answered("LINE", [], []), no_calls)


@pytest.mark.parametrize("wrong", [{"ROWS": [0, 1, 2, 3]}, {"REST_ROWS": [1]}])
def test_label_refuses_more_rows_than_answers(label, wrong):
    colour = answered("COLOUR", [[0, 1]], [[0.9, 0.1]])
    told = sent(colour, "colour") | {name: np.array(rows, np.int32) for name, rows in wrong.items()}
    colour["COLOUR_SENT"] = sent_of("colour").pack(told)
    with pytest.raises(BadRequest, match="COLOUR_SENT: expected an answer to each crop"):
        label.process({"CLASS": np.zeros(4, np.int32)} | colour | answered("LINE", [], []), no_calls)


def test_label_refuses_a_class_without_a_name(label):
    given = {"CLASS": np.array([2], np.int32)} | answered("COLOUR", [], []) | answered("LINE", [], [])
    with pytest.raises(StageError, match="the network answered class 2, there are names for 0 to 1"):
        label.process(given, no_calls)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (Preprocess, PREPROCESS | {"resize": "fill"}, "should be letterbox or stretch, is 'fill'"),
        (Crop, CROP | {"family": "yolo"}, "parameter 'family' should be one of"),
        (Crop, CROP | {"binarize": "0.3"}, "unknown parameter 'binarize'"),
        (
            Crop,
            CROP | {"colour.resize": "fill"},
            "a_stage: colour: parameter 'resize' should be stretch, pad or letterbox",
        ),
        (Turn, TURN | {"max_batch": "many"}, "parameter 'max_batch' should be a whole number"),
        (Label, {"detector.labels": "missing.txt"}, "missing.txt should hold one name a line in UTF-8"),
        (Label, {}, "a_stage: detector: parameter 'labels' is missing"),
        (Label, {"detector.labels": "x.txt", "top_k": "1"}, "a_stage: unknown parameter 'top_k'"),
    ],
)
def test_wrong_settings_stop_the_model(kind, parameters, message):
    with pytest.raises(BadSettings, match=message):
        kind.load(spec(parameters))
