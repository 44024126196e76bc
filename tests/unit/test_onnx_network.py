"""The stand-in for Triton's ONNX Runtime: what it runs, with how many threads, and what it refuses to load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tricade import onnx_network, side_by_side
from tricade.errors import BadSettings, StageError
from tricade.onnx_network import OnnxNetwork
from tricade.stage import ModelSpec, Tensor


@pytest.fixture
def spec(tmp_path: Path) -> ModelSpec:
    """A model whose OUT is twice its IN, batch first."""
    nodes = [helper.make_node("Add", ["IN", "IN"], ["OUT"])]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in ("IN", "OUT")]
    graph = helper.make_graph(nodes, "twice", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (tmp_path / "1").mkdir()
    onnx.save(model, tmp_path / "1" / "model.onnx")
    tensors = (Tensor("IN", "FP32", (2,)),), (Tensor("OUT", "FP32", (2,)),)
    return ModelSpec("twice", tmp_path, 1, {}, *tensors, 8, 1, "model.onnx")


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_it_runs_a_batch(spec, batch):
    given = np.arange(2 * batch, dtype=np.float32).reshape(batch, 2)
    assert OnnxNetwork.load(spec).run({"IN": given})["OUT"].tolist() == (2 * given).tolist()


def test_several_requests_are_one_batch(spec):
    network, given = OnnxNetwork.load(spec), np.arange(8, dtype=np.float32).reshape(4, 2)
    answers = network.run_all([{"IN": given[:1]}, {"IN": given[1:]}])
    assert [answer["OUT"].tolist() for answer in answers] == [(2 * given[:1]).tolist(), (2 * given[1:]).tolist()]


@pytest.mark.parametrize("max_batch", [2, 8])
@pytest.mark.parametrize("batch", [1, 2, 4, 7, 8])
def test_rows_side_by_side_are_the_same_rows(spec, monkeypatch, max_batch, batch):
    """Four threads: batches of 8 have a session of one thread, those of 2 share the one there is."""
    monkeypatch.setattr(onnx_network, "cores", lambda: 4)
    monkeypatch.setattr(side_by_side, "WORTH_S", 0.0)
    network = OnnxNetwork.load(replace(spec, max_batch_size=max_batch))
    network.run({"IN": np.zeros((1, 2), np.float32)})  # from which it knows what a row takes
    given = np.arange(2 * batch, dtype=np.float32).reshape(batch, 2)
    assert network.run({"IN": given})["OUT"].tolist() == (2 * given).tolist()
    network.close()


@pytest.mark.parametrize(
    ("cores", "max_batch", "sessions"), [(4, 8, [4, 1]), (4, 4, [4, 1]), (4, 2, [4]), (1, 8, [1]), (4, 1, [4])]
)
def test_a_second_session_is_opened_for_batches_of_a_row_a_core(spec, monkeypatch, cores, max_batch, sessions):
    opened = []
    open_one = onnx_network.session_of

    def counted(file, *, threads, device_id=None):
        opened.append(threads)
        return open_one(file, threads=threads, device_id=device_id)

    monkeypatch.setattr(onnx_network, "cores", lambda: cores)
    monkeypatch.setattr(onnx_network, "session_of", counted)
    OnnxNetwork.load(replace(spec, max_batch_size=max_batch)).close()
    assert opened == sessions


def test_it_says_which_provider_it_really_got(spec):
    network = OnnxNetwork.load(replace(spec, device_id=0))  # asks for a GPU where there may be none
    assert network.provider == network.session.get_providers()[0]
    assert network.provider in network.notes[0]


@pytest.mark.parametrize(
    ("cores", "instances", "parameters", "threads"),
    [(8, 1, {}, 8), (8, 2, {}, 8), (8, 3, {}, 5), (2, 5, {}, 1), (8, 2, {"intra_op_thread_count": "3"}, 3)],
)
def test_instances_share_the_cores(spec, monkeypatch, cores, instances, parameters, threads):
    monkeypatch.setattr(onnx_network, "cores", lambda: cores)
    options = OnnxNetwork.load(replace(spec, instances=instances, parameters=parameters)).session.get_session_options()
    assert options.intra_op_num_threads == threads


def test_a_wrong_input_is_an_error_of_the_request(spec):
    with pytest.raises(StageError, match="ONNX Runtime: "):
        OnnxNetwork.load(spec).run({"IN": np.zeros((1, 3), np.float32)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "twice: there is no model.onnx in version 2; run: tricade build"),
        ({"inputs": (Tensor("X", "FP32", (2,)),)}, "twice: config.pbtxt names X, the ONNX has IN, OUT"),
        ({"outputs": (Tensor("OUT", "INT32", (2,)),)}, "config.pbtxt says OUT is INT32, the ONNX has tensor\\(float"),
    ],
)
def test_what_does_not_fit_its_configuration_is_not_loaded(spec, change, message):
    with pytest.raises(BadSettings, match=message):
        OnnxNetwork.load(replace(spec, **change))


def test_what_is_no_onnx_is_not_loaded(spec):
    (spec.directory / "1" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BadSettings, match=r"cannot load model\.onnx"):
        OnnxNetwork.load(spec)
