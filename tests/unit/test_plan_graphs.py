"""CUDA graphs of a plan's executions: when they are captured, how long they hold, what is done without them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from gpu.fake_context import Died
from gpu.fakes import classifier
from gpu.loading import crops, loader, sums
from gpu.manifests import record

from tricade.contexts import PAID
from tricade.errors import StageError
from tricade.manifest import MANIFEST


@pytest.fixture
def load(monkeypatch, tmp_path):
    yield from loader(monkeypatch, tmp_path)


def check(network, rows, width=4, seed=0):
    """One run's answer is right."""
    given = np.random.default_rng(seed).integers(0, 256, (rows, 2, width, 3), np.uint8)
    np.testing.assert_array_equal(network.run({"CROPS": given})["INDEX"], sums(given))


@pytest.mark.parametrize("version", ["8.6.0", "10.13.0", "11.4.0"])
def test_from_its_third_execution_on_a_shape_is_launched_by_one_call(load, version):
    network = load(classifier(version=version))
    for run in range(3):
        check(network, 4, seed=run)
    assert len(load.cuda.graphs) == 1
    load.cuda.calls.clear()
    load.cuda.copies.clear()
    for run in range(5):
        check(network, 4, seed=run)
    assert load.cuda.calls == {"launch": 5, "synchronize": 5}
    assert load.cuda.copies == [("HostToDevice", 96), ("DeviceToHost", 16), ("DeviceToHost", 16)] * 5


@pytest.mark.parametrize(("after", "captured"), [("0", 0), ("1", 1), ("5", 0)])
def test_the_number_of_executions_before_is_a_switch(load, after, captured):
    network = load(classifier(), switches={"graph_after": after})
    for run in range(4):
        check(network, 4, seed=run)
    assert len(load.cuda.graphs) == captured
    check(network, 4, seed=9)


def test_each_shape_has_its_own_graph_and_context(load):
    engine = classifier()
    network = load(engine)
    for run in range(5):
        for rows, width in ((1, 4), (8, 4), (3, 8)):
            check(network, rows, width, seed=run)
    assert len(load.cuda.graphs) == 3
    assert len(engine.contexts) == 3


def test_there_are_no_more_contexts_than_allowed_and_the_least_recent_is_given_up(load):
    engine = classifier()
    network = load(engine, switches={"contexts": "2"})
    for rows in (3, 2):
        for run in range(3):
            check(network, rows, seed=run)
    check(network, 3)
    check(network, 1)  # instead of 2
    assert len(engine.contexts) == 2
    assert len(load.cuda.graphs) == 1
    load.cuda.calls.clear()
    check(network, 3)
    assert load.cuda.calls["launch"] == 1


def test_graphs_of_memory_that_grows_are_captured_again(load):
    network = load(classifier())
    for rows in (1, 1, 1, 1, 8, 1, 1, 1, 8, 8, 1, 8):
        check(network, rows, 8, seed=rows)
    assert len(load.cuda.graphs) == 2
    load.cuda.calls.clear()
    check(network, 1, 8)
    check(network, 8, 8)
    assert load.cuda.calls["launch"] == 2


def test_once_warm_it_has_seen_every_number_of_rows_and_its_memory_stays(load):
    engine = classifier()
    network = load(engine)
    network.warm_up()
    assert len(engine.contexts) == 9  # 1 to 8 rows of the narrowest, 8 of the widest
    load.cuda.calls.clear()
    held = set(load.cuda.held)
    for rows in range(1, 9):
        check(network, rows, seed=rows)
    check(network, 8, 8)
    assert set(load.cuda.held) == held
    assert len(engine.contexts) == 9
    assert not load.cuda.graphs
    for rows in (8, 1):
        check(network, rows)
    assert len(load.cuda.graphs) == 2  # the third execution of each


def test_a_plan_with_one_context_is_warm_after_a_few_executions(load, tmp_path):
    (tmp_path / "1" / MANIFEST).unlink()
    engine = classifier()
    network = load(engine)
    network.warm_up()
    assert len(engine.contexts) == 1
    check(network, 8, 8)


@pytest.mark.parametrize("whose", ["CUDA", "TensorRT"])
def test_a_capture_that_fails_is_told_and_never_tried_again(load, whose):
    network = load(classifier(can_be_captured=whose != "TensorRT"))
    load.cuda.can_capture = whose != "CUDA"
    for run in range(3):
        check(network, 4, seed=run)
    (warning,) = network.warnings
    assert warning.startswith(f"goes on without CUDA graphs, one could not be captured: {whose}")
    load.cuda.can_capture = True
    for rows in (4, 4, 4, 2, 2, 2, 2):
        check(network, rows)
    assert not load.cuda.graphs
    assert len(network.warnings) == 1


@pytest.mark.parametrize(
    "told",
    [
        lambda file: (file.parent / MANIFEST).unlink(),
        lambda file: (file.parent / MANIFEST).write_text("["),
        lambda file: (file.parent / MANIFEST).write_text('{"model.plan": {"sha256": ""}}'),
        lambda file: record(file, b"another plan"),
        lambda file: record(file, file.read_bytes(), flags=["-TF32"]),
    ],
    ids=["no manifest", "no JSON", "no plan of its own", "of another plan", "without the flag"],
)
def test_a_plan_that_is_not_known_to_share_its_profiles_has_one_context(load, tmp_path, told):
    told(tmp_path / "1" / "model.plan")
    engine = classifier(shares_profiles=False)
    network = load(engine)
    assert "has one execution context, thus one CUDA graph at a time" in network.notes[1]
    assert "run: tricade build" in network.notes[1]
    for rows in (4, 4, 4, 4, 2, 2, 4, 4, 4):
        check(network, rows)
    for rows in (8, 8, 4, 8):
        check(network, rows, 8)
    assert len(engine.made) == 1


@pytest.mark.parametrize("version", ["10.13.0", "11.4.0"])
def test_from_10_on_a_plan_shares_its_profiles_whatever_is_recorded(load, tmp_path, version):
    (tmp_path / "1" / MANIFEST).unlink()
    engine = classifier(version=version)
    network = load(engine)
    for rows in (3, 2, 1):
        check(network, rows)
    assert len(engine.contexts) == 3


def test_a_second_context_on_a_plan_that_does_not_share_would_be_the_end(load):
    network = load(classifier(shares_profiles=False))  # recorded as one that does
    check(network, 1)
    with pytest.raises(Died):
        check(network, 2)


def test_where_memory_for_another_context_is_short_those_there_are_must_do(load, monkeypatch):
    engine = classifier()
    network = load(engine)
    for rows in (1, 2):
        check(network, rows)
    monkeypatch.setattr(engine, "_context", lambda own_memory: None)
    for rows in (3, 1, 2, 3, 4):
        check(network, rows)
    assert len(engine.contexts) == 2


def test_graphs_that_do_not_pay_become_rare(load, monkeypatch):
    network = load(classifier(), switches={"contexts": "1"})
    captures = []
    begin = load.cuda.cudaStreamBeginCapture
    monkeypatch.setattr(load.cuda, "cudaStreamBeginCapture", lambda *given: (captures.append(1), begin(*given))[1])
    for _ in range(6):
        for rows in (1, 2):
            for _ in range(6):
                check(network, rows)
    assert len(captures) == 2  # after 3, then after 6; 12 in a row never came
    for _ in range(12 + PAID):
        check(network, 1)
    check(network, 2)
    captures.clear()
    for _ in range(3):
        check(network, 1)
    assert len(captures) == 1  # the last one paid


def test_an_execution_that_fails_fails_alone(load):
    engine = classifier()
    network = load(engine, switches={"graph_after": "2"})
    check(network, 4)
    for context in engine.contexts:
        context.works = False
    with pytest.raises(StageError, match="cannot execute"):
        check(network, 4)
    for context in engine.contexts:
        context.works = True
    for run in range(4):
        check(network, 4, seed=run)
    assert len(load.cuda.graphs) == 1


def test_close_gives_graphs_back(load):
    network = load(classifier())
    for _ in range(4):
        check(network, 4)
    network.close()
    network.close()
    assert not load.cuda.graphs
    assert not load.cuda.held
    assert not load.cuda.streams


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("contexts", ["1", "2", "3", "32"])
def test_any_order_of_shapes_is_answered_right(load, tmp_path, shares, contexts):
    choose = random.Random(int(contexts))
    if not shares:
        (tmp_path / "1" / MANIFEST).unlink()
    network = load(classifier(shares_profiles=shares), switches={"contexts": contexts, "graph_after": "2"})
    for run in range(60):
        width = choose.choice([4, 4, 4, 5, 8])
        given = crops(choose.choice([1, 2, 3, 8]), width) + run
        cut = choose.randrange(len(given))
        requests = [{"CROPS": part} for part in (given[:cut], given[cut:]) if len(part)]
        for _ in range(choose.choice([1, 2, 6])):
            found = np.concatenate([answer["INDEX"] for answer in network.run_all(requests)])
            np.testing.assert_array_equal(found, sums(given))
    assert load.cuda.calls["launch"]
