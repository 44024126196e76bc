"""Box families: raw heads of three pictures, folded and run, against plain decoders; and every layout that is refused."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import graphs
import numpy as np
import onnxruntime
import pytest
import raw_heads
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from raw_heads import CLASSES, HEADS, PICTURES, SIZE, folded

from tricade_build.errors import FoldError
from tricade_build.families import FAMILIES, chosen, seams
from tricade_build.plain import Front, opened
from tricade_build.spec import Normalize
from tricade_build.want import MAX_CANDIDATES, Want

DTYPES = (np.float32, np.float16)
CAST_LIKE = 15  # the opset of an operator that the decoded DETR export has


def agrees(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    """Equal scores in their order; the rows are the same, those of equal scores in any order."""
    np.testing.assert_allclose(found[:, 4], expected[:, 4], rtol=1e-5, atol=1e-6)
    ours, theirs = (
        rows[np.lexsort(np.round(np.column_stack([rows[:, :4], rows[:, 5], rows[:, 4]]), 2).T)]
        for rows in (found, expected)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("name", HEADS)
def test_agrees_with_a_plain_decoder(name: str, opset: int, dtype: type) -> None:
    head = HEADS[name]

    made = head.folded(dtype=dtype, opset=max(opset, CAST_LIKE) if head.sizes else opset)

    for levels in ((1,), (0, 1, 2)):
        found = graphs.run(made.model, raw_heads.pictures(*levels))["CANDIDATES"]
        assert (found.dtype, found.shape) == (np.float32, (len(levels), *made.shapes.outputs[0].dims))
        for image, level in zip(found, levels, strict=True):
            agrees(image, head.expected(level, dtype=dtype))


@pytest.mark.parametrize("opset", [11, 12])
@pytest.mark.parametrize("name", ["yolov5", "yolox", "yolov8, turned", "yolov10", "detr", "nms, plugin"])
def test_old_opsets(name: str, opset: int) -> None:
    found = graphs.run(HEADS[name].folded(opset=opset).model, raw_heads.pictures(2))["CANDIDATES"]

    agrees(found[0], HEADS[name].expected(2))


@pytest.mark.parametrize("name", HEADS)
def test_the_best_few(name: str) -> None:
    made = HEADS[name].folded(candidates=5, opset=17)

    assert made.shapes.outputs[0].dims == (5, 6)
    agrees(graphs.run(made.model, raw_heads.pictures(0))["CANDIDATES"][0], HEADS[name].expected(0, candidates=5))


@pytest.mark.parametrize("name", HEADS)
def test_a_network_of_one_picture_at_a_time(name: str) -> None:
    made = HEADS[name].folded(single=True, opset=17, entry=(1, 3, *SIZE))

    agrees(graphs.run(made.model, raw_heads.pictures(1))["CANDIDATES"][0], HEADS[name].expected(1))


@cache
def session(name: str) -> onnxruntime.InferenceSession:
    data = HEADS[name].folded(opset=17, candidates=10).model.SerializeToString()
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", HEADS)
@given(levels=st.lists(st.integers(0, PICTURES - 1), min_size=1, max_size=6), random=st.randoms(use_true_random=False))
def test_images_of_a_batch_do_not_see_each_other(name: str, levels: list[int], random: Any) -> None:
    order = list(range(len(levels)))
    random.shuffle(order)

    (found,) = session(name).run(["CANDIDATES"], {"TENSOR": raw_heads.pictures(*levels)})
    (moved,) = session(name).run(["CANDIDATES"], {"TENSOR": raw_heads.pictures(*(levels[place] for place in order))})

    np.testing.assert_array_equal(moved, found[order])


# By hand: the one thing in a picture of 64 × 128 is at 8, 16, 40, 48, of class 2.
THING = (24.0, 32.0, 32.0, 32.0)  # centre x, centre y, width, height


def known(family: str) -> dict[str, NDArray[np.float32]]:
    centre = np.array(THING)
    share = centre / [128, 64, 128, 64]
    corners = np.array([8, 16, 40, 48])
    rows: dict[str, dict[str, Any]] = {
        "yolov5": {"o": [[*centre, 0.5, 0.1, 0.2, 0.8]]},
        "yolov8": {"o": [[*centre, 0.1, 0.2, 0.4], [0.0] * 7]},
        "yolov10": {"o": [[*corners, 0.4, 2]]},
        "detr": {"boxes": [share], "logits": [np.log([1 / 9, 1 / 4, 2 / 3])]},
        "nms": {"boxes": [corners, [0] * 4], "n": [1], "scores": [0.4, 0], "classes": [2, 0]},
    }
    # The cell of stride 16 in row 1, column 1, behind 8 × 16 cells of stride 8 and a row of 8: centre 24 + 0, 32 + 0.
    cells = np.zeros((168, 5 + CLASSES), np.float32)
    cells[128 + 8 + 1] = [0.5, 1, np.log(2), np.log(2), 0.5, 0.1, 0.2, 0.8]
    rows["yolox"] = {"o": cells}
    whole = {"n", "classes"} if family == "nms" else set()
    return {n: np.array(v, np.int32 if n in whole else np.float32)[None] for n, v in rows[family].items()}


@pytest.mark.parametrize("family", ["detr", "nms", "yolov10", "yolov5", "yolov8", "yolox"])
def test_a_known_box(family: str) -> None:
    made = folded(family, graphs.choosing(known(family), opset=17), Want(SIZE, CLASSES, 300))

    found = graphs.run(made.model, raw_heads.pictures(0))["CANDIDATES"][0]

    np.testing.assert_allclose(found[0], [8, 16, 40, 48, 0.4, 2], rtol=1e-5)
    assert not found[1:].any()


BAD = {
    "a score": {"scores": np.nan},
    "infinity in a box": {"boxes": np.inf},
    "no number in a box": {"boxes": np.nan},
    "a negative score": {"scores": -0.5},
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", HEADS)
def test_what_is_no_number_is_no_candidate(name: str, bad: str) -> None:
    """One anchor of the first picture, the best, is spoilt; the others and the other pictures stay."""
    head = HEADS[name]
    spoilt = _spoilt(head, **BAD[bad])

    found = graphs.run(spoilt.folded(opset=17).model, raw_heads.pictures(0, 1))["CANDIDATES"]

    assert np.all(np.isfinite(found))
    assert np.all(found[..., 4] >= 0)
    for image, level in zip(found, (0, 1), strict=True):
        expected = spoilt.expected(level)
        rows = image[image[:, 4] > 0]
        agrees(rows[np.argsort(-rows[:, 4], kind="stable")], expected[expected[:, 4] > 0])


def _spoilt(head: raw_heads.Head, *, scores: float | None = None, boxes: float | None = None) -> raw_heads.Head:
    """The second anchor of picture 0."""
    banks = {key: bank.copy() for key, bank in head.banks.items()}
    columns = 4 + CLASSES
    for key, bank in banks.items():
        if bank.dtype != np.float32 or key in ("det_classes", "stride8"):
            continue
        view = bank[0].T if bank.shape[1] == columns else bank[0]  # anchors first
        flat = view.ndim == 1
        is_scores = flat or key == "scores" or (key == "labels" and head.family == "detr")
        if scores is not None and (is_scores or view.shape[-1] > 4):
            view[1 if flat else (1, ..., slice(0 if is_scores else 4, None if head.family != "yolov10" else 5))] = (
                scores
            )
        if boxes is not None and not is_scores:
            view[(1, ..., 2)] = boxes
    return dataclasses.replace(head, banks=banks)


def banks(**shapes: tuple[int, ...] | tuple[tuple[int, ...], type]) -> dict[str, NDArray[Any]]:
    """Zeros for two pictures."""
    made = {}
    for name, shape in shapes.items():
        sides, dtype = shape if isinstance(shape[-1], type) else (shape, np.float32)
        made[name] = np.zeros((2, *sides), dtype)  # type: ignore[misc]
    return made


def fix(name: str) -> dict[str, NDArray[Any]]:
    return dict(HEADS[name].banks)


PIXELS = [  # one tensor, what the family says of it, what else fits
    ("yolov5", banks(o=(7, 40)), r"\[M, anchors, 8\], .*found \[M, 7, 40\]; family yolov8 fits"),
    ("yolov5", banks(o=(40, 7)), r"\[M, anchors, 8\], .*found \[M, 40, 7\]; family yolov8 fits"),
    ("yolov5", banks(o=(168, 8)), r"found \[M, 168, 8\]; family yolox fits"),
    ("yolov5", banks(o=(30, 6)), r"found \[M, 30, 6\]; family yolov10 fits"),
    ("yolov5", banks(o=(40, 85)), "as many labels as the network has classes: 80?"),
    ("yolov5", banks(a=(3, 8, 16, 8), b=(3, 4, 8, 8)), r"a \[M, 3, 8, 16, 8\], b .*: --grid"),
    ("yolov5", banks(o=(8,)), r"found \[M, 8\]$"),
    ("yolov8", banks(o=(40, 8)), r"\[M, 7, anchors\] or \[M, anchors, 7\].*found \[M, 40, 8\]; family yolov5 fits"),
    ("yolov8", banks(o=(168, 8)), "family yolox fits"),
    ("yolov8", banks(o=(30, 6)), "family yolov10 fits"),
    ("yolov8", banks(a=(20, 4), b=(20, 3)), r"found a \[M, 20, 4\], b \[M, 20, 3\]; family detr fits"),
    ("yolov8", fix("nms, four outputs"), "family nms fits"),
    ("yolov8", banks(o=(1, *SIZE)), r"found \[M, 1, 64, 128\]; family dbnet fits"),
    ("yolov10", banks(o=(40, 8)), r"\[M, boxes, 6\] of at most 3840 .*found \[M, 40, 8\]; family yolov5 fits"),
    ("yolov10", banks(o=(7, 40)), "family yolov8 fits"),
    ("yolov10", banks(o=(MAX_CANDIDATES + 1, 6)), r"found \[M, 3841, 6\]$"),
    ("yolox", banks(o=(40, 8)), r"\[M, cells, 8\], .*found \[M, 40, 8\]; family yolov5 fits"),
    ("yolox", banks(o=(7, 168)), "family yolov8 fits"),
    ("yolox", banks(o=(168, 85)), "as many labels as the network has classes: 80?"),
    ("detr", banks(o=(7, 40)), r"boxes \[M, queries, 4\] and logits \[M, queries, 3\].*; family yolov8 fits"),
    ("detr", banks(a=(20, 4), b=(20, 91)), "as many labels as the network has classes: 91?"),
    ("detr", banks(a=(20, 4), b=(21, 3)), r"found a \[M, 20, 4\], b \[M, 21, 3\]$"),
    ("detr", fix("nms, four outputs"), "family nms fits"),
    ("detr", fix("nms, two outputs"), "family nms fits"),
    ("nms", banks(o=(30, 6)), r"EfficientNMS_TRT of boxes .*found \[M, 30, 6\]; family yolov10 fits"),
    ("nms", banks(boxes=(20, 4), scores=(20,), labels=((20,), np.int64)), "family detr fits"),
    ("nms", banks(o=(7, 40)), "family yolov8 fits"),
    ("dbnet", banks(o=(7, 40)), r"\[M, 1, 64, 128\], .*found \[M, 7, 40\]; family yolov8 fits"),
    ("dbnet", banks(o=(1, 32, 64)), "multiples of the network's stride"),
]


@pytest.mark.parametrize(("family", "outputs", "said"), PIXELS)
def test_refuses_another_layout_and_says_which_family_fits(
    family: str, outputs: dict[str, NDArray[Any]], said: str
) -> None:
    with pytest.raises(FoldError, match=said):
        folded(family, graphs.choosing(outputs, opset=17), Want(SIZE, CLASSES, 300))


def test_names_all_families_that_fit() -> None:
    with pytest.raises(FoldError, match=r"found \[M, 50, 6\]; families yolov10, yolov8 fit"):
        folded("dbnet", graphs.choosing(banks(o=(50, 6))), Want(SIZE, 2, 300))


@pytest.mark.parametrize("family", ["nms", "yolov5", "yolov10"])
def test_rows_of_all_pictures_in_one_list(family: str) -> None:
    """As YOLOv7 exports with its own suppression for ONNX Runtime."""
    tail = (
        graphs.node("NonZero", ["o"], ["places"]),
        graphs.node("Transpose", ["places"], ["turned"], perm=[1, 0]),
        graphs.node("Cast", ["turned"], ["found"], to=1),
    )
    model = graphs.choosing({"o": np.zeros((2, 5, 7), np.float32)}, *tail, outputs=("found",))

    with pytest.raises(FoldError, match=r"found \[\?, 3\]; how many rows .*without --end2end, with --grid"):
        folded(family, model, Want(SIZE, CLASSES, 300))


@pytest.mark.parametrize(
    ("boxes", "scores", "inputs", "said"),
    [
        ((40, 4), (40, 80), 2, "found boxes .*; give as many labels as the scores have columns"),
        ((40, 3, 4), (40, 3), 2, "one box for each anchor"),
        ((40, 4), (40, 3), 3, "with anchors is not known here: export boxes that are decoded"),
    ],
)
def test_a_plugin_that_does_not_fit(boxes: tuple[int, ...], scores: tuple[int, ...], inputs: int, said: str) -> None:
    outputs = banks(boxes=boxes, scores=scores, anchors=(40, 4))
    plugin = graphs.node("EfficientNMS_TRT", list(outputs)[:inputs], ["n"], domain="TRT")

    with pytest.raises(FoldError, match=said):
        folded("nms", graphs.choosing(outputs, plugin, outputs=("n",)), Want(SIZE, CLASSES, 300))


def test_another_family_says_so_of_a_plugin() -> None:
    head = HEADS["nms, plugin"]

    with pytest.raises(FoldError, match=r"family detr\), found boxes \[M, 40, 4\], scores .*; family nms fits"):
        folded("detr", head.model(), head.want())


def answer_of(head: raw_heads.Head) -> Any:
    return opened(head.model(opset=17), Front("TENSOR", SIZE, (), Normalize()), seams()).answer


# A decoded YOLOX looks like one that is not; the key `decoded` belongs to a family that is named.
@pytest.mark.parametrize("name", [name for name in HEADS if name != "yolox, decoded"])
def test_auto_takes_the_one_that_fits(name: str) -> None:
    assert chosen(answer_of(HEADS[name]), HEADS[name].want()).name == HEADS[name].family


def test_auto_asks_where_several_fit_and_lists_all_where_none_does() -> None:
    head = dataclasses.replace(HEADS["yolov8"], banks=banks(output0=(50, 6)))
    with pytest.raises(FoldError, match=r"expected a network that one family fits; yolov10, yolov8 fit \[M, 50, 6\]"):
        chosen(answer_of(head), head.want(classes=2))

    head = dataclasses.replace(HEADS["yolov8"], banks=banks(output0=(50,)))
    with pytest.raises(FoldError, match=r"expected a layout of these, found \[M, 50\]\n    dbnet: ") as caught:
        chosen(answer_of(head), head.want())
    assert all(f"\n    {family}: " in str(caught.value) for family in FAMILIES)
