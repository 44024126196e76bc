"""The example's networks, folded, against the files as they were published with numpy around them."""

from __future__ import annotations

import graphs
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from tricade_build.families import FAMILIES
from tricade_build.fold import Front, fold
from tricade_build.heads import HEADS
from tricade_build.heads import Want as HeadWant
from tricade_build.models import fetch
from tricade_build.spec import Normalize
from tricade_build.want import Want as FamilyWant

HALF = Normalize(colour="bgr", mean=(127.5, 127.5, 127.5), std=(127.5, 127.5, 127.5))


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, onnx.ModelProto]:
    """`det`, `cls` and `rec` as they were published."""
    folder = fetch("text", into=tmp_path_factory.mktemp("models")).folder
    return {path.stem: onnx.load(path) for path in folder.glob("*.onnx")}


def pictures(batch: int, height: int, width: int) -> NDArray[np.uint8]:
    """Black strokes on white, some blurred: something that the networks have an opinion on."""
    random = np.random.default_rng(batch)
    strokes = random.random((batch, height // 8, width // 4, 1)).repeat(8, 1).repeat(4, 2).repeat(3, 3)
    return np.where(strokes < 0.3, 20, 235).astype(np.uint8) - random.integers(0, 20, strokes.shape, np.uint8)


def plain(model: onnx.ModelProto, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """What the published network answers to RGB pixels."""
    value = (pixels[..., ::-1].astype(np.float32) / 255 - 0.5) / 0.5
    (answer,) = graphs.run(model, value.transpose(0, 3, 1, 2)).values()
    return answer


@pytest.mark.parametrize("batch", [1, 2])
def test_the_detectors_map(networks: dict[str, onnx.ModelProto], batch: int) -> None:
    want = FamilyWant((96, 160), classes=1, candidates=0)
    front = Front("TENSOR", want.size, (), HALF)
    pixels = pictures(batch, *want.size)

    made = fold(networks["det"], front, lambda nodes, raw: FAMILIES["dbnet"].end(nodes, raw, want))

    found = graphs.run(made.model, pixels)["MAP"].astype(int)
    expected = np.round(plain(networks["det"], pixels)[:, 0] * 255).astype(int)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1  # a level next to the middle between two


@pytest.mark.parametrize(
    ("name", "head", "size", "widths", "width"),
    [
        ("cls", "softmax", (48, 192), (), 192),
        ("rec", "ctc", (48, 320), (), 320),
        ("rec", "ctc", (48, 320), (320, 480), 320),
        ("rec", "ctc", (48, 320), (320, 480), 480),
    ],
)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_classifiers_answers(
    networks: dict[str, onnx.ModelProto],
    name: str,
    head: str,
    size: tuple[int, int],
    widths: tuple[int, ...],
    width: int,
    batch: int,
) -> None:
    front, want = Front("CROPS", size, widths, HALF), HeadWant(top_k=1, any_width=bool(widths))
    pixels = pictures(batch, size[0], width)

    made = fold(networks[name], front, lambda nodes, raw: HEADS[head].end(nodes, raw, want))

    found = graphs.run(made.model, pixels)
    probabilities = plain(networks[name], pixels)
    if head == "softmax":
        probabilities = probabilities[:, None]  # one step
    np.testing.assert_array_equal(found["INDEX"], probabilities.argmax(-1))
    np.testing.assert_allclose(found["SCORE"], probabilities.max(-1), atol=2e-5)
