"""The bench of a GPU host: shares of callers, sums of rounds, edited repositories, and time that runs out."""

from __future__ import annotations

import json
import time

import cascade
import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from bench.gpu.alone import loaded, rows_per_s, warmed
from bench.gpu.callers import Met, joined, shares_of
from bench.gpu.children import JobFailed, children, together
from bench.gpu.engines import bound_of
from bench.gpu.options import parsed
from bench.gpu.results import Results
from bench.gpu.served import Moment, Work, between
from bench.gpu.variants import delayed, instances, unbatched, variant, without_ring
from bench.load import Round
from tricade_build.build import build


@pytest.mark.parametrize(
    ("callers", "processes", "shares"),
    [(1, 4, [1]), (8, 4, [8]), (15, 4, [15]), (17, 4, [9, 8]), (32, 4, [8, 8, 8, 8]), (130, 4, [33, 33, 32, 32])],
)
def test_callers_are_spread_over_processes_that_have_enough_of_them(callers, processes, shares):
    assert shares_of(callers, processes) == shares


def test_rounds_at_the_same_time_add_up():
    met = joined([Met(Round((1.0, 3.0), ("no",), 2.0, 1), 0.5), Met(Round((2.0,), (), 3.0, 0), 0.25)])
    assert met == Met(Round((1.0, 3.0, 2.0), ("no",), 5.0, 1), 0.75)
    assert met.figures()["p50_ms"] == 2.0
    assert met.figures()["client_cpu_ms"] == 250.0


def test_networks_that_share_a_gpu_bound_the_pictures():
    assert bound_of({"weighty_detector": 100.0, "weighty_colour": 500.0}, 5) == pytest.approx(50.0)


def test_a_step_is_what_its_model_did_meanwhile():
    before = Moment(0.0, {"weighty": Work(3, 3, 3, (0, 0, 0, 0), 0)}, {"weighty": 1.0}, 0.0)
    after = Moment(2.0, {"weighty": Work(7, 7, 5, (4, 8, 12, 16), 1000)}, {"weighty": 2.0}, 3.0)
    found = between(before, after, {1: "weighty", 2: "weighty"})
    assert (found["served_calls"], found["idle_cores"]) == (4, 1.5)
    assert found["steps"]["weighty"] == {
        "requests_a_call": 1.0,
        "rows": 4,
        "executions": 2,
        "queue_ms": 1.0,
        "compute_input_ms": 2.0,
        "compute_infer_ms": 3.0,
        "compute_output_ms": 4.0,
        "rows_an_execution": 2.0,
        "executing": 0.5,
        "processes": 2,
        "cpu_ms_a_call": 250.0,
        "cpu_busy_each": 0.25,
    }


def test_a_variant_is_edited_and_the_original_stays(tmp_path):
    build(cascade.write(tmp_path / "source"), repository=tmp_path / "built")
    kept = {file: file.read_bytes() for file in (tmp_path / "built").rglob("*") if file.is_file()}
    edits = (instances({"crop": 5, "colour": 2}), delayed(7), without_ring)
    late = variant(tmp_path / "built", tmp_path / "late", *edits)
    alone = variant(tmp_path / "built", tmp_path / "alone", unbatched)

    def config(repository, path):
        return text_format.Parse((repository / path).read_text(), ModelConfig())

    assert config(late, "squares_crop/config.pbtxt").instance_group[0].count == 5
    assert config(late, "squares_preprocess/config.pbtxt").parameters["ring_bytes"].string_value == "0"
    for file in ("squares_colour/config.pbtxt", "squares_colour/configs/onnxruntime.pbtxt"):
        assert config(late, file).instance_group[0].count == 2
        assert config(late, file).dynamic_batching.max_queue_delay_microseconds == 7
        assert not config(alone, file).HasField("dynamic_batching")
    assert {file: file.read_bytes() for file in kept} == kept


def test_children_measure_a_network_alone_and_say_what_went_wrong(tmp_path):
    build(cascade.write(tmp_path / "source"), repository=tmp_path / "built")
    folder = tmp_path / "built" / "squares_colour"
    with children(1) as [child]:
        assert together([child], [(loaded, {"folder": folder})], within_s=60)[0][0] == "OnnxNetwork"
        together([child], [(warmed, {"folder": folder, "batch": 8})], within_s=60)
        timing = {"seconds": 0.1, "begin_s": time.monotonic()}
        [(rate, warnings)] = together([child], [(rows_per_s, {"folder": folder, "batch": 8, **timing})], within_s=60)
        assert rate > 0
        assert warnings == []
        with pytest.raises(JobFailed, match="TypeError: "):
            together([child], [(time.sleep, {"seconds": 1})], within_s=60)


def test_what_does_not_fit_is_skipped_and_what_fails_is_told(tmp_path):
    results = Results(tmp_path / "gpu.json", cap_s=60)
    results.measure("long", 100, dict, callers=1)
    results.measure("wrong", 1, lambda: {}["figure"], callers=1)
    results.measure("right", 1, lambda: {"rate": 1 / 3}, callers=1)
    long, wrong, right = json.loads((tmp_path / "gpu.json").read_text())
    assert long["skipped"].startswith("100 s are needed, 3")
    assert wrong["error"] == "KeyError: 'figure'"
    assert right["rate"] == 0.3333
    assert results.found("right", callers=1)["rate"] == 0.3333
    assert results.found("wrong", callers=1) is None


def test_options_that_cannot_be_are_refused(tmp_path, capsys):
    assert parsed("", [str(tmp_path), "--instances", "crop=3"]).instances == {"crop": 3}
    for arguments in (["--only", "engine"], ["--compare", "fp8"], ["--instances", "turn=2"]):
        with pytest.raises(SystemExit):
            parsed("", [str(tmp_path), *arguments])
    assert "got turn" in capsys.readouterr().err
