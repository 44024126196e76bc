"""A plan loaded and run without TensorRT and without a GPU: answers, what a run moves, what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from gpu.fakes import Engine, classifier, specification, tensorrt
from gpu.loading import crops, loader, sums

from tricade import cuda
from tricade import engine as engines
from tricade.batch import run_together
from tricade.errors import BadRequest, BadSettings, EngineMisfit, StageError
from tricade.plan_network import PlanNetwork
from tricade.stage import Tensor

VERSIONS = ("8.6.0", "10.13.0", "11.4.0")


@pytest.fixture
def load(monkeypatch, tmp_path):
    yield from loader(monkeypatch, tmp_path)


@pytest.fixture
def fake_cuda(load):
    return load.cuda


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rows", [1, 7, 8])
def test_a_batch_is_answered_on_every_version(load, version, rows):
    network = load(classifier(version=version))
    outputs = network.run({"CROPS": crops(rows)})
    np.testing.assert_array_equal(outputs["INDEX"], sums(crops(rows)))
    np.testing.assert_array_equal(outputs["SCORE"], (sums(crops(rows)) / 2).astype(np.float32))
    assert [array.dtype for array in outputs.values()] == [np.int32, np.float32]
    assert network.notes == (f"runs on TensorRT {version} through Python, Fake GPU",)


def test_several_inputs_and_outputs_of_several_types(load):
    ranges = ((1, 1), (2, 4), (8, 16))
    engine = Engine(
        inputs={"LEFT": ("HALF", (-1, -1)), "RIGHT": ("INT64", (-1, -1))},
        outputs={"MORE": ("BOOL", (-1, -1)), "SUM": ("FLOAT", (-1, -1))},
        profiles=[{"LEFT": ranges, "RIGHT": ranges}],
        compute=lambda found: {"MORE": found["LEFT"] > found["RIGHT"], "SUM": found["LEFT"] + found["RIGHT"]},
        infer=lambda shapes: dict.fromkeys(("MORE", "SUM"), shapes["LEFT"]),
        version="10.13.0",
    )
    wanted = (Tensor("SUM", "FP32", (-1,)), Tensor("MORE", "BOOL", (-1,)))
    network = load(engine, inputs=(Tensor("LEFT", "FP16", (-1,)), Tensor("RIGHT", "INT64", (-1,))), outputs=wanted)
    left, right = np.array([[1.5, 2]], np.float16), np.array([[1, 2]], np.int64)
    outputs = network.run({"RIGHT": right, "LEFT": left})
    np.testing.assert_array_equal(outputs["SUM"], np.array([[2.5, 4]], np.float32))
    np.testing.assert_array_equal(outputs["MORE"], [[True, False]])


def test_a_run_moves_its_tensors_once_through_memory_that_only_grows(load, fake_cuda):
    network = load(classifier())
    first = network.run({"CROPS": crops(4)})
    assert fake_cuda.copies == [("HostToDevice", 96), ("DeviceToHost", 16), ("DeviceToHost", 16)]
    held = set(fake_cuda.held)
    kept = first["INDEX"].copy()
    network.run({"CROPS": crops(2) + 1})
    assert set(fake_cuda.held) == held
    np.testing.assert_array_equal(first["INDEX"], kept)
    network.run({"CROPS": crops(8)})
    assert len(fake_cuda.held) == len(held)


def test_an_output_of_no_elements_is_one_all_the_same(load):
    engine = classifier()
    engine.outputs = {"INDEX": ("INT32", (-1, 0)), "SCORE": ("FLOAT", (-1, 0))}
    engine.infer = lambda shapes: dict.fromkeys(engine.outputs, (shapes["CROPS"][0], 0))
    engine.compute = lambda _given: {}
    outputs = (Tensor("INDEX", "INT32", (0,)), Tensor("SCORE", "FP32", (0,)))
    network = load(engine, outputs=outputs)
    for _ in range(5):
        assert network.run({"CROPS": crops(2)})["INDEX"].shape == (2, 0)


def test_an_output_that_nobody_asked_for_stays_on_the_gpu(load, fake_cuda):
    network = load(classifier(), outputs=(Tensor("SCORE", "FP32", (1,)),))
    assert network.run({"CROPS": crops(4)})["SCORE"].shape == (4, 1)
    assert fake_cuda.copies == [("HostToDevice", 96), ("DeviceToHost", 16)]


@pytest.mark.parametrize("rows", [[1], [1, 1], [3, 1, 4], [2, 5]])
def test_several_requests_are_answered_by_one_execution(load, fake_cuda, rows):
    network = load(classifier())
    whole = crops(sum(rows))
    ends = np.cumsum(rows)
    requests = [{"CROPS": whole[end - count : end]} for count, end in zip(rows, ends, strict=True)]
    answers = network.run_all(requests)
    for answer, count, end in zip(answers, rows, ends, strict=True):
        np.testing.assert_array_equal(answer["INDEX"], sums(whole)[end - count : end])
    assert [kind for kind, _ in fake_cuda.copies] == ["HostToDevice", "DeviceToHost", "DeviceToHost"]


@pytest.mark.parametrize("wrong", [crops(3).astype(np.float32), crops(0)])
def test_a_request_that_no_engine_may_see_fails_alone(load, wrong):
    first, refused, last = run_together(
        load(classifier()), [{"CROPS": crops(2)}, {"CROPS": wrong}, {"CROPS": crops(1)}]
    )
    np.testing.assert_array_equal(first["INDEX"], sums(crops(2)))
    np.testing.assert_array_equal(last["INDEX"], sums(crops(1)))
    assert isinstance(refused, BadRequest)


def test_a_request_that_makes_its_batch_too_large_fails_it(load):
    network = load(classifier())
    with pytest.raises(BadRequest, match=r"CROPS \[9,2,4,3\] came"):
        network.run_all([{"CROPS": crops(8)}, {"CROPS": crops(1)}])


def test_rows_that_do_not_lie_in_order_arrive_in_order(load):
    turned = crops(4).transpose(0, 3, 2, 1).copy().transpose(0, 3, 2, 1)
    network = load(classifier())
    np.testing.assert_array_equal(network.run({"CROPS": turned})["INDEX"], network.run({"CROPS": crops(4)})["INDEX"])


def test_the_profile_changes_only_where_the_shape_asks_for_it(load):
    engine = classifier()
    network = load(engine, switches={"contexts": "1"})
    (context,) = engine.contexts
    before = context.switches
    for width in (8, 8, 4, 4, 8):
        assert network.run({"CROPS": crops(3, width)})["INDEX"].shape == (3, 1)
    assert context.switches == before + 3


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"CROPS": crops(0)}, r"CROPS \[0,2,4,3\] is empty"),
        ({"CROPS": crops(2, 0)}, "is empty"),
        ({}, "takes CROPS, nothing came"),
        ({"CROPS": crops(1), "MORE": crops(1)}, "takes CROPS, CROPS, MORE came"),
        ({"CROPS": crops(1).astype(np.float32)}, "CROPS is float32, uint8 is expected"),
        ({"CROPS": crops(9)}, r"CROPS \[9,2,4,3\] came"),
    ],
)
def test_what_an_engine_must_not_see_never_reaches_it(load, inputs, words):
    engine = classifier()
    network = load(engine)
    with pytest.raises(BadRequest, match=words):
        network.run(inputs)
    assert [context.executions for context in engine.contexts] == [0]


def test_a_failure_of_an_execution_says_what_tensorrt_logged(load):
    engine = classifier()
    network = load(engine)
    for context in engine.contexts:
        context.works = False
    log = engines.tensorrt()[1]
    log.log(log.Severity.ERROR, "Error Code 1: Cuda Runtime (an illegal memory access)")
    log.log(log.Severity.WARNING, "never told")
    with pytest.raises(StageError, match=r"TensorRT cannot execute: Error Code 1: Cuda Runtime \(an illegal"):
        network.run({"CROPS": crops(1)})


def test_full_memory_fails_the_call_and_no_later_one(load, fake_cuda):
    network = load(classifier())
    fake_cuda.memory = 350
    with pytest.raises(StageError, match=r"CUDA: out of memory \(cudaErrorMemoryAllocation\)"):
        network.run({"CROPS": crops(8, 8)})
    assert network.run({"CROPS": crops(4)})["INDEX"].shape == (4, 1)


def test_where_the_largest_inputs_find_no_room_the_model_is_not_loaded(load, fake_cuda):
    network = load(classifier())
    fake_cuda.memory = 350
    with pytest.raises(EngineMisfit, match=r"text_orientation: CUDA: out of memory"):
        network.warm_up()


def test_close_gives_everything_back(load, fake_cuda):
    network = load(classifier())
    network.run({"CROPS": crops(8)})
    assert fake_cuda.held
    assert fake_cuda.streams
    network.close()
    network.close()
    assert not fake_cuda.held
    assert not fake_cuda.streams


def test_a_model_that_does_not_load_holds_nothing(load, fake_cuda):
    with pytest.raises(EngineMisfit, match=r"^text_orientation: config\.pbtxt has max_batch_size 16"):
        load(classifier(), max_batch_size=16)
    assert not fake_cuda.held
    assert not fake_cuda.streams


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        ({"graph": "0"}, "text_orientation: plan: unknown parameter 'graph'; known are contexts, gpu_outputs, graph_"),
        ({"contexts": "0"}, "text_orientation: plan: contexts should be 1 or more"),
        ({"gpu_outputs": "yes"}, "parameter 'gpu_outputs' should be true or false, is 'yes'"),
    ],
)
def test_a_switch_that_is_none_stops_the_model(load, fake_cuda, switches, words):
    with pytest.raises(BadSettings, match=words):
        load(classifier(), switches=switches)
    assert not fake_cuda.streams


def test_parameters_of_the_native_backend_are_left_to_it(load):
    load(classifier(), parameters={"execution_context_allocation_strategy": "STATIC"})


def test_a_plan_of_another_version_is_refused_in_tensorrts_words(load):
    says = ["Version tag does not match. Note: Current Version: 232, Serialized Engine Version: 239", "failed."]
    with pytest.raises(EngineMisfit) as caught:
        load(None, package=tensorrt(None, says=says))
    assert str(caught.value) == (
        "text_orientation: model.plan is no plan for TensorRT 8.6.0 on Fake GPU: " + "; ".join(says) + "; "
        "a plan fits the TensorRT version and the kind of GPU it was built on: run here: tricade build"
    )


def test_an_engine_whose_output_the_data_size_is_refused_at_load(load):
    engine = classifier()
    engine.infer = lambda shapes: {"INDEX": (-1, 1), "SCORE": (shapes["CROPS"][0], 1)}
    with pytest.raises(EngineMisfit, match=r"INDEX \[-1,1\] of model.plan has a size that its data decide"):
        load(engine)


@pytest.mark.parametrize(
    ("devices", "changes", "words"),
    [
        (0, {}, "a plan needs a CUDA device, this machine has none: CUDA: no CUDA-capable device is detected"),
        (2, {"device_id": 2}, r"instance_group names GPU 2, this process sees 2 \(the first is 0\)"),
        (1, {"device_id": None}, "a plan needs an instance_group of KIND_GPU, this one is on a processor"),
        (1, {"version": 2}, "there is no model.plan in version 2; run: tricade build"),
    ],
)
def test_a_gpu_or_a_file_that_is_missing_is_named(load, fake_cuda, devices, changes, words):
    fake_cuda.devices = devices
    with pytest.raises(EngineMisfit, match=f"^text_orientation: .*{words}"):
        load(classifier(), **changes)


@pytest.mark.parametrize("missing", ["tensorrt", "cuda"])
def test_a_package_that_is_missing_is_named(load, monkeypatch, tmp_path, missing):
    load(classifier()).close()
    for name in {"tensorrt": ["tensorrt"], "cuda": [cuda.BINDINGS, cuda.OLDER_BINDINGS]}[missing]:
        monkeypatch.setitem(sys.modules, name, None)
    engines.tensorrt.cache_clear()
    with pytest.raises(EngineMisfit, match=f"needs the Python package {missing}"):
        PlanNetwork.load(specification(tmp_path))


def test_older_bindings_do_as_well(load, fake_cuda, monkeypatch):
    monkeypatch.setitem(sys.modules, cuda.BINDINGS, None)
    monkeypatch.setitem(sys.modules, cuda.OLDER_BINDINGS, fake_cuda)
    assert load(classifier()).run({"CROPS": crops(2)})["INDEX"].shape == (2, 1)


def test_our_own_folder_is_not_taken_for_the_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "tensorrt", raising=False)
    monkeypatch.setattr(sys, "path", [str(Path(engines.__file__).parents[1])])
    engines.tensorrt.cache_clear()
    with pytest.raises(EngineMisfit, match=r"cannot be imported: found .*tensorrt'\] in its place"):
        engines.tensorrt()
    monkeypatch.delitem(sys.modules, "tensorrt")
