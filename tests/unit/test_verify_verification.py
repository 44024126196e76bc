"""The gate and its words, the record in a manifest, the table."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import pytest
from pydantic import TypeAdapter
from rich.console import Console

from tricade_build.verify import Verification, Worst, failure, rows
from tricade_build.verify.verification import Deviation
from tricade_cli.verification import table_of

PASSED = Verification(
    samples=64,
    unit="pictures",
    measure="mAP at IoU 0.5",
    agreement=0.99,
    drop=0.01,
    max_drop=0.01,
    errors={"CANDIDATES": Deviation(0.0, 0.0, 0, 0), "output0": Deviation(0.25, 0.0125, 12000, 0)},
    not_finite=0,
    details={"f1": 0.995, "expected": 120, "missed": 1, "added": 0},
    worst=(Worst("a.jpg", "1 missed, 0 added", "car 0.90 at 0, 0, 9, 9", "none"),),
)
BEHIND = replace(PASSED, agreement=0.94, drop=0.06)
BROKEN = replace(
    PASSED,
    not_finite=3,
    errors={"output0": Deviation(0.0, 0.0, 5, 3)},
    worst=(Worst("b.jpg", "not finite in output0: 3", "", ""),),
)
EMPTY = replace(PASSED, samples=0, unit="crops", agreement=1.0, drop=0.0, worst=())


@pytest.mark.parametrize(
    ("verification", "passed"),
    [(PASSED, True), (BEHIND, False), (replace(BEHIND, max_drop=0.06), True), (BROKEN, False), (EMPTY, False)],
)
def test_the_gate(verification, passed):
    assert verification.passed is passed


def test_a_record_is_read_as_it_was_written():
    kind = TypeAdapter(Verification)

    assert kind.validate_json(kind.dump_json(BROKEN)) == BROKEN


def test_behind():
    assert failure("street_detector", "int8", BEHIND) == (
        "street_detector in int8: expected an agreement with fp32 (mAP at IoU 0.5) of at least 0.99 "
        "(verification.max_drop 0.01); got 0.9400 over 64 pictures\n"
        "  a.jpg: 1 missed, 0 added; fp32: car 0.90 at 0, 0, 9, 9; here: none\n"
        "name its sensitive nodes in keep_fp32, calibrate with other pictures or another calibration.method, "
        "choose another precision for it, or allow more by verification.max_drop"
    )


def test_not_finite():
    assert failure("street_detector", "fp16", BROKEN) == (
        "street_detector in fp16: expected finite numbers where fp32's are; got 3 that are not, in output0 "
        "(agreement 0.9900)\n"
        "  b.jpg: not finite in output0: 3\n"
        "name its sensitive nodes in keep_fp32, or choose another precision for it"
    )


def test_fp32_has_no_other_precision():
    assert failure("street_detector", "fp32", BEHIND).endswith(
        "\nbuild with --target onnxruntime, or allow more by verification.max_drop"
    )
    assert failure("street_detector", "fp32", BROKEN).endswith("\nbuild with --target onnxruntime")


def test_nothing_to_compare():
    assert failure("street_plate", "fp16", EMPTY) == (
        "street_plate in fp16: expected crops to compare with fp32 on; the pictures have none\n"
        "name a folder under verification.images whose pictures show what this network looks at"
    )


def test_rows():
    passed, empty = rows({"street_detector": PASSED, "street_plate": EMPTY})

    assert (passed.model, passed.verdict, passed.agreement, passed.allowed) == (
        "street_detector",
        "passed",
        "0.9900",
        "0.99",
    )
    assert passed.samples == "64 pictures"
    assert [(row.tensor, row.values, row.max_error, row.mean_error, row.not_finite) for row in passed.tensors] == [
        ("CANDIDATES", "–", "–", "–", "0"),
        ("output0", "12,000", "0.25", "0.013", "0"),
    ]
    assert (empty.verdict, empty.agreement, empty.samples) == ("failed", "–", "0 crops")
    assert rows({}) == []


def test_the_table():
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table_of({"street_[b]detector": PASSED, "street_plate": replace(EMPTY, errors={})}))
    text = console.export_text()

    for shown in (
        "street_[b]detector",
        "passed",
        "failed",
        "0.9900",
        "at least 0.99",
        "output0",
        "0.25",
        "64 pictures",
    ):
        assert shown in text
    assert table_of({}).row_count == 0


def test_plots_cost_nothing_before_they_are_drawn():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, tricade_build.verify; sys.exit('matplotlib' in sys.modules)"], check=False
    )
    assert done.returncode == 0
