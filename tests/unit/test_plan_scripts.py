"""The scripts for a real GPU, rehearsed on the fakes with a network of no layers and few rounds."""

from __future__ import annotations

import json
import sys

import numpy as np
import onnxruntime
import pytest
from gpu import graphs, in_process, switches
from gpu.fakes import Engine, tensorrt
from gpu.loading import loader
from gpu.try_plans import steps, wrong

from tricade import plan_network
from tricade.manifest import MANIFEST


@pytest.fixture
def load(monkeypatch, tmp_path):
    monkeypatch.setattr(graphs, "_DEEP", graphs._DEEP[:0])  # nothing is computed: Y is X
    monkeypatch.setattr(plan_network.ctypes, "CDLL", lambda _name: None)
    monkeypatch.setattr(in_process, "RUNS", 20)
    for name, value in (("ROUNDS", 1), ("RUNS", 8), ("WARM_UP", 1)):
        monkeypatch.setattr(switches, name, value)
    yield from loader(monkeypatch, tmp_path)


def deep(**changes):
    narrow, wide = (graphs.CHANNELS, graphs.ROWS, 16), (graphs.CHANNELS, graphs.ROWS, 64)
    shape = (-1, graphs.CHANNELS, graphs.ROWS, -1)
    return Engine(
        inputs={"X": ("FLOAT", shape)},
        outputs={"Y": ("FLOAT", shape)},
        profiles=[{"X": ((1, *narrow), (16, *narrow), (16, *wide))}],
        compute=lambda given: {"Y": graphs.deepen(given["X"])},
        infer=lambda shapes: {"Y": shapes["X"]},
        **changes,
    )


def unshared(folder):
    (folder / "1" / MANIFEST).unlink()
    return switches.try_unshared(folder)


def classifier():
    def compute(given):
        index, score = graphs.classify(given["CROPS"])
        return {"INDEX": index, "SCORE": score}

    size = (graphs.HEIGHT, graphs.WIDTH, 3)
    return Engine(
        inputs={"CROPS": ("UINT8", (-1, *size))},
        outputs={"INDEX": ("INT32", (-1, 2)), "SCORE": ("FLOAT", (-1, 2))},
        profiles=[{"CROPS": ((1, *size), (16, *size), (16, *size))}],
        compute=compute,
        infer=lambda shapes: dict.fromkeys(("INDEX", "SCORE"), (shapes["CROPS"][0], 2)),
    )


@pytest.mark.parametrize(
    ("engine", "do"),
    [
        (deep(), switches.try_answers),
        (deep(shares_profiles=False), unshared),
        (deep(), lambda folder: switches.try_any_order(folder, runs=20)),
        (deep(), switches.try_times),
        (deep(), switches.try_costs),
        (deep(), switches.try_gpu_arrays),
        (classifier(), in_process.try_classifier),
        (classifier(), in_process.try_reloading),
    ],
)
def test_a_step_finds_nothing_wrong(load, monkeypatch, tmp_path, engine, do):
    load.cuda.memory = 1 << 24
    monkeypatch.setitem(sys.modules, "tensorrt", tensorrt(engine))
    found = do(tmp_path)
    json.dumps(found)
    assert list(wrong({"step": found})) == []


def test_what_is_wrong_is_found():
    found = {
        "answers": {"found": {"all on": {"right": False, "warnings": ["goes on without CUDA graphs"]}}, "s": 1},
        "damaged": {"found": {"text": "NOT REFUSED", "cut": "EngineMisfit: …"}, "s": 0.5},
        "served": "PROCESS DIED: -11, ",
        "times": {"found": {"1 row": {"all on": {"p50": 1.0}}}, "s": 2},
    }
    assert list(wrong(found)) == ["answers: all on: right", "answers: all on: warnings", "damaged: text", "served"]


def test_every_step_is_there(tmp_path):
    assert {"answers", "times", "served", "served_switches"} < set(steps(tmp_path, tmp_path))


def test_numpy_and_the_graph_agree():
    session = onnxruntime.InferenceSession(graphs.deep().SerializeToString(), providers=["CPUExecutionProvider"])
    given = switches.rows(2, 33)
    (found,) = session.run(None, {"X": given})
    np.testing.assert_allclose(graphs.deepen(given), found, rtol=1e-4, atol=1e-4)
