"""Detectors compared: by hand, and with what pycocotools finds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tricade_build.verify import DetectorComparison, Found, Verification, Worst

HERE, THERE, FAR = (0, 0, 10, 10), (20, 0, 30, 10), (50, 50, 60, 60)


def found(*rows: tuple[tuple[float, ...], float, int]) -> Found:
    boxes, scores, classes = zip(*rows, strict=True) if rows else ((), (), ())
    return Found(np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32), np.array(classes, np.int32))


def compared(*pictures: tuple[list, list], max_drop: float = 0.01) -> Verification:
    comparison = DetectorComparison(threshold=0.25, names=("car", "bus"))
    for number, (reference, candidate) in enumerate(pictures):
        comparison.add(f"{number}.jpg", errors_of=({}, {}), reference=found(*reference), candidate=found(*candidate))
    return comparison.done(max_drop=max_drop)[0]


@pytest.mark.parametrize(
    ("pictures", "agreement", "details"),
    [
        # nothing expected, nothing found
        ([([], [])], 1.0, (1.0, 0, 0, 0)),
        ([([], [(HERE, 0.2, 0)])], 1.0, (1.0, 0, 0, 0)),
        ([([(HERE, 0.9, 0)], [(HERE, 0.8, 0)])], 1.0, (1.0, 1, 0, 0)),
        ([([(HERE, 0.9, 0)], [])], 0.0, (0.0, 1, 1, 0)),
        # a score that falls below the threshold: the ranking stays, what is served does not
        ([([(HERE, 0.26, 0)], [(HERE, 0.24, 0)])], 1.0, (0.0, 1, 1, 0)),
        # and one that rises above it
        ([([(HERE, 0.24, 0)], [(HERE, 0.26, 0)])], 1.0, (0.0, 0, 0, 1)),
        # an invented one, where nothing is expected and among others of another class
        ([([], [(HERE, 0.3, 0)])], 0.0, (0.0, 0, 0, 1)),
        ([([(HERE, 0.9, 0)], [(HERE, 0.9, 0), (FAR, 0.9, 1)])], 0.5, (2 / 3, 1, 0, 1)),
        # another class: one is missed, one added
        ([([(HERE, 0.9, 0)], [(HERE, 0.9, 1)])], 0.0, (0.0, 1, 1, 1)),
        # all of cars, half of buses (51 of 101 points): 2·2 / (2·2 + 1)
        (
            [([(HERE, 0.9, 0), (FAR, 0.9, 1)], [(HERE, 0.9, 0), (FAR, 0.9, 1)]), ([(THERE, 0.9, 1)], [])],
            (1 + 51 / 101) / 2,
            (0.8, 3, 1, 0),
        ),
    ],
)
def test_table(pictures, agreement, details):
    verification = compared(*pictures)

    assert verification.agreement == pytest.approx(agreement)
    assert verification.drop == pytest.approx(1 - agreement)
    assert verification.details == pytest.approx(dict(zip(("f1", "expected", "missed", "added"), details, strict=True)))
    assert verification.samples == len(pictures)


def test_no_pictures_prove_nothing():
    assert not compared().passed


def test_the_worst_pictures_come_first():
    right, wrong = [(HERE, 0.9, 0)], [(THERE, 0.8, 1)]

    verification = compared((right, right), (right + wrong, right), (right, wrong), *[([], [])] * 5)

    assert verification.worst == (
        Worst("2.jpg", "1 missed, 1 added", "car 0.90 at 0, 0, 10, 10", "bus 0.80 at 20, 0, 30, 10"),
        Worst("1.jpg", "1 missed, 0 added", "bus 0.80 at 20, 0, 30, 10", "none"),
    )


def test_five_are_named_at_most():
    assert len(compared(*[([(HERE, 0.9, 0)], [])] * 9).worst) == 5


def test_one_number_that_is_not_finite_fails():
    comparison = DetectorComparison(threshold=0.25)
    tensors = [{"output0": np.array([value, 1], np.float32)} for value in (1, np.nan)]
    comparison.add("a\n.jpg", errors_of=(tensors[0], tensors[0]), reference=found(), candidate=found())
    assert comparison.done(max_drop=1)[0].passed

    comparison.add("b\n.jpg", errors_of=(tensors[0], tensors[1]), reference=found(), candidate=found())
    verification, _ = comparison.done(max_drop=1)

    assert (verification.not_finite, verification.agreement, verification.passed) == (1, 1.0, False)
    assert verification.worst == (Worst("b\N{REPLACEMENT CHARACTER}.jpg", "not finite in output0: 1", "", ""),)


def test_what_plots_show():
    comparison = DetectorComparison(threshold=0.25)
    for reference, candidate in [([(HERE, 0.75, 0)], [(HERE, 0.5, 0), (FAR, 0.9, 0)]), ([], [])]:
        comparison.add("a.jpg", errors_of=({}, {}), reference=found(*reference), candidate=found(*candidate))
        comparison.add("b.jpg", errors_of=({}, {}), reference=found(), candidate=found())

    _, plots = comparison.done(max_drop=0.01)

    np.testing.assert_array_equal(plots.scores, np.array([[0.75, 0.5]], np.float32))
    np.testing.assert_allclose(plots.agreements, [2 / 3, 1])


# Agreements by pycocotools 2.0.11 (AP at IoU 0.5, area all, 100 detections). It knows nothing of thresholds: those
# that do not count were given to it with an area beyond its largest, which it ignores.
@pytest.mark.parametrize(
    ("seed", "lowest", "expected"),
    [
        (0, 0.3, 0.777515),
        (3, 0.3, 0.699746),
        (9, 0.3, 0.810400),
        (0, 0.1, 0.751129),
        (2, 0.1, 0.768371),
        (5, 0.1, 0.673808),
    ],
)
def test_against_pycocotools(seed, lowest, expected):
    comparison = DetectorComparison(threshold=0.25)
    for number, (reference, candidate) in enumerate(random_pictures(seed, lowest)):
        comparison.add(f"{number}", errors_of=({}, {}), reference=reference, candidate=candidate)

    assert comparison.done(max_drop=0.01)[0].agreement == pytest.approx(expected, abs=1e-6)


def random_pictures(seed: int, lowest: float) -> Iterator[tuple[Found, Found]]:
    """Three classes; the candidate loses some, moves and rescores the others, and invents a few."""
    random = np.random.default_rng(seed)

    def boxes(count: int) -> np.ndarray:
        corner = random.integers(0, 100, (count, 2))
        return np.concatenate([corner, corner + random.integers(20, 60, (count, 2))], axis=1)

    for _ in range(30):
        count = int(random.integers(0, 12))
        here = boxes(count)
        scores = np.round(random.uniform(lowest, 1, count), 3)
        classes = random.integers(0, 3, count)
        kept = random.random(count) > 0.1
        moved = here[kept] + random.integers(-7, 8, (kept.sum(), 4))
        rescored = np.round(np.clip(scores[kept] + random.normal(0, 0.15, kept.sum()), 0.05, 1), 3)
        invented = boxes(int(random.integers(0, 4)))
        rescored = np.append(rescored, np.round(random.uniform(0.05, 0.7, len(invented)), 3))
        named = np.append(classes[kept], random.integers(0, 3, len(invented)))
        yield (
            Found(here.astype(np.float32), scores.astype(np.float32), classes.astype(np.int32)),
            Found(
                np.concatenate([moved, invented]).astype(np.float32),
                rescored.astype(np.float32),
                named.astype(np.int32),
            ),
        )
