"""Tensors that lie on the GPU already, and outputs that stay there."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest
from gpu.fakes import classifier
from gpu.loading import crops, loader, sums

from tricade import plan_network
from tricade.dlpack import DeviceArray
from tricade.errors import BadRequest, EngineMisfit
from tricade.stage import Tensor


@pytest.fixture
def load(monkeypatch, tmp_path):
    monkeypatch.setattr(plan_network.ctypes, "CDLL", lambda name: {"libcuda.so": name}[name])
    yield from loader(monkeypatch, tmp_path)


def on_gpu(load, array):
    """A copy of it in the fake GPU's memory."""
    address = load.cuda.cudaMalloc(array.nbytes)[1]
    ctypes.memmove(address, array.ctypes.data, array.nbytes)
    return DeviceArray(address, array.shape, array.dtype, 0, owner=address)


def from_gpu(load, array):
    load.cuda.check("device", array.address, array.nbytes)
    return np.frombuffer(ctypes.string_at(array.address, array.nbytes), array.dtype).reshape(array.shape)


@pytest.mark.parametrize("runs", [1, 5])
def test_inputs_on_the_gpu_do_not_visit_the_host(load, runs):
    network = load(classifier())
    given = crops(4)
    for _ in range(runs):
        np.testing.assert_array_equal(network.run({"CROPS": on_gpu(load, given)})["INDEX"], sums(given))
    assert load.cuda.copies == [("DeviceToDevice", 96), ("DeviceToHost", 16), ("DeviceToHost", 16)] * runs


def test_requests_from_both_sides_are_one_batch(load):
    network = load(classifier())
    parts = [crops(1), crops(2) + 1, crops(3) + 2]
    for _ in range(5):
        answers = network.run_all([{"CROPS": parts[0]}, {"CROPS": on_gpu(load, parts[1])}, {"CROPS": parts[2]}])
        for part, answer in zip(parts, answers, strict=True):
            np.testing.assert_array_equal(answer["INDEX"], sums(part))


def test_graphs_know_on_which_side_the_inputs_were(load):
    network = load(classifier())
    for run in range(6):
        for given in (crops(4) + run, on_gpu(load, crops(4) + run)):
            np.testing.assert_array_equal(network.run({"CROPS": given})["INDEX"], sums(crops(4) + run))
    assert len(load.cuda.graphs) == 2


@pytest.mark.parametrize(
    ("array", "words"),
    [(crops(1).astype(np.float32), "CROPS is float32, uint8 is expected"), (crops(9), "came; keep inside")],
)
def test_an_array_on_the_gpu_is_checked_like_any_other(load, array, words):
    with pytest.raises(BadRequest, match=words):
        load(classifier()).run({"CROPS": on_gpu(load, array)})


def test_outputs_that_stay_on_the_gpu_have_memory_of_their_own(load):
    network = load(classifier(), switches={"gpu_outputs": "true"})
    kept = []
    for run in range(6):
        requests = [{"CROPS": crops(1) + run}, {"CROPS": crops(3) + run}]
        kept.append((requests, network.run_all(requests)))
    for requests, answers in kept:
        for inputs, answer in zip(requests, answers, strict=True):
            assert isinstance(answer["INDEX"], DeviceArray)
            np.testing.assert_array_equal(from_gpu(load, answer["INDEX"]), sums(inputs["CROPS"]))
            np.testing.assert_array_equal(from_gpu(load, answer["SCORE"]), (sums(inputs["CROPS"]) / 2))
    assert load.cuda.copies == [("HostToDevice", 96), ("DeviceToDevice", 16), ("DeviceToDevice", 16)] * 6


def test_memory_that_is_dropped_is_lent_again(load):
    network = load(classifier(), switches={"gpu_outputs": "true"})
    network.run({"CROPS": crops(4)})
    gc.collect()
    held = set(load.cuda.held)
    for run in range(6):
        network.run({"CROPS": crops(4) + run})
    assert set(load.cuda.held) == held


def test_memory_that_is_still_lent_outlives_its_network(load):
    network = load(classifier(), switches={"gpu_outputs": "true"})
    answer = network.run({"CROPS": crops(2)})
    network.close()
    np.testing.assert_array_equal(from_gpu(load, answer["INDEX"]), sums(crops(2)))
    del answer
    gc.collect()
    assert not load.cuda.held


def test_one_network_s_outputs_are_another_one_s_inputs(load, tmp_path):
    engine = classifier()
    engine.inputs, engine.outputs = {"X": ("FLOAT", (-1, 4))}, {"Y": ("FLOAT", (-1, 4))}
    engine.profiles = [{"X": ((1, 4), (8, 4), (8, 4))}]
    engine.compute, engine.infer = lambda given: {"Y": given["X"] * 2}, lambda shapes: {"Y": shapes["X"]}
    tensors = {name: (Tensor(name, "FP32", (4,)),) for name in "XY"}
    first = load(engine, inputs=tensors["X"], outputs=tensors["Y"], switches={"gpu_outputs": "true"})
    second = load(engine, inputs=tensors["X"], outputs=tensors["Y"])
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    for _ in range(5):
        middle = first.run({"X": given})
        np.testing.assert_array_equal(second.run({"X": middle["Y"]})["Y"], given * 4)


def test_without_the_library_that_triton_s_stub_wants_the_model_is_not_loaded(load, monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(plan_network.ctypes, "CDLL", missing)
    with pytest.raises(EngineMisfit, match=r"plan.gpu_outputs needs libcuda.so, .*link it to libcuda.so.1"):
        load(classifier(), switches={"gpu_outputs": "true"})
