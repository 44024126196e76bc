"""A plan behind Triton's Python edge: what the stub hands over, what it gets back, what the log is told."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from gpu.fake_stub import Request, stub
from gpu.fakes import classifier, tensorrt
from gpu.loading import crops, loader, sums

from tricade import dlpack, plan_network

ROOT = Path(__file__).resolve().parents[2]
STUB = "triton_python_backend_utils"
CONFIG = {
    "name": "colour",
    "max_batch_size": 8,
    "input": [{"name": "CROPS", "data_type": "TYPE_UINT8", "dims": ["2", "-1", "3"]}],
    "output": [
        {"name": "INDEX", "data_type": "TYPE_INT32", "dims": ["1"]},
        {"name": "SCORE", "data_type": "TYPE_FP32", "dims": ["1"]},
    ],
}
WANTED = ["INDEX", "SCORE"]


@pytest.fixture
def edge(monkeypatch):
    monkeypatch.setitem(sys.modules, STUB, stub())
    yield import_module("tricade.triton")
    del sys.modules["tricade.triton"]


@pytest.fixture
def load(monkeypatch, tmp_path, edge):
    """Loads a fake engine as Triton does, with these parameters."""
    monkeypatch.setattr(plan_network.ctypes, "CDLL", lambda _name: None)

    def load(engine, **parameters):
        monkeypatch.setitem(sys.modules, "tensorrt", tensorrt(engine))
        instance = edge.model_of(plan_network.PlanNetwork)()
        values = {name: {"string_value": value} for name, value in parameters.items()}
        instance.initialize(
            {
                "model_config": json.dumps({**CONFIG, "parameters": values}),
                "model_repository": str(tmp_path),
                "model_version": "1",
                "model_instance_kind": "GPU",
                "model_instance_device_id": "0",
            }
        )
        return instance

    for _ in loader(monkeypatch, tmp_path):
        yield load


def log():
    return sys.modules[STUB].Logger.lines


def ask(instance, *arrays):
    return [response.values() for response in instance.execute([Request({"CROPS": a}, WANTED) for a in arrays])]


def test_requests_of_one_width_are_one_execution_and_others_fail_alone(load):
    instance = load(classifier())
    requests = [Request({"CROPS": given}, WANTED) for given in (crops(2), crops(0), crops(1), crops(1, 8))]
    first, empty, third, wide = instance.execute(requests)
    for response, given in ((first, crops(2)), (third, crops(1)), (wide, crops(1, 8))):
        np.testing.assert_array_equal(response.values()["INDEX"], sums(given))
    assert empty.error.code == "INVALID_ARG"
    assert "is empty" in empty.error.words


def test_it_is_warm_once_it_is_loaded(load):
    engine = classifier()
    load(engine)
    assert sum(context.executions for context in engine.contexts) == 9  # 1 to 8 rows, 8 of the widest


def test_only_what_is_asked_for_is_answered(load):
    (response,) = load(classifier()).execute([Request({"CROPS": crops(2)}, ["SCORE"])])
    assert list(response.values()) == ["SCORE"]


def test_a_graph_that_cannot_be_captured_is_told_to_the_log_once(load):
    instance = load(classifier(can_be_captured=False))
    assert [kind for kind, _ in log()] == ["info"]
    for _ in range(6):
        ask(instance, crops(2))
    warnings = [line for kind, line in log() if kind == "warning"]
    assert len(warnings) == 1
    assert warnings[0].startswith("colour: goes on without CUDA graphs")


def test_tensors_stay_on_the_gpu_from_one_plan_to_the_next_and_are_given_back(load):
    instance = load(classifier(), **{"plan.gpu_outputs": "true", "FORCE_CPU_ONLY_INPUT_TENSORS": "no"})
    (first,) = instance.execute([Request({"CROPS": crops(6)}, WANTED)])
    assert not any(tensor.is_cpu() for tensor in first.outputs)
    lent = first.values()["INDEX"]
    given = dlpack.DeviceArray(lent.address, (1, 2, 4, 3), np.dtype(np.uint8), 0, lent)  # its 24 bytes
    for _ in range(5):
        (answer,) = ask(instance, given)
        assert answer["INDEX"].shape == (1, 1)
    del first, lent, given, answer
    gc.collect()
    assert not dlpack._out


def test_no_stage_on_the_processor_knows_of_a_gpu():
    """Nothing that a stage's stub imports may open a CUDA context."""
    program = (
        "import sys; from gpu.fake_stub import stub; sys.modules['triton_python_backend_utils'] = stub()\n"
        "import tricade.triton, tricade.preprocess, tricade.crop, tricade.turn, tricade.label\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('cuda', 'tensorrt', 'torch', 'cupy', 'onnxruntime')])"
    )
    path = [str(ROOT / folder) for folder in ("tests", "backends")]
    command = [sys.executable, "-c", f"import sys; sys.path += {path!r}\n{program}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
