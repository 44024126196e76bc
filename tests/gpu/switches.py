"""`PlanNetwork` with each of its switches on and off: right answers in any order, µs per execution, what graphs cost."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tricade.cuda import open_device
from tricade.dlpack import array_from, capsule_from
from tricade.plan_network import PlanNetwork
from tricade.stage import Tensor

from .graphs import CHANNELS, ROWS, deepen
from .in_process import refusal, specification

X, Y = Tensor("X", "FP32", (CHANNELS, ROWS, -1)), Tensor("Y", "FP32", (CHANNELS, ROWS, -1))
BATCH, WIDTHS = 16, (16, 32, 48, 64)
_ALL_OFF = {"contexts": "1", "graph_after": "0"}
WAYS: Mapping[str, Mapping[str, str]] = {
    "all off": _ALL_OFF,
    "contexts": {"graph_after": "0"},
    "graphs, one context": {"contexts": "1"},
    "all on": {},
}
ROUNDS, RUNS, WARM_UP = 5, 200, 30


def loaded(directory: Path, switches: Mapping[str, str] = WAYS["all on"]) -> PlanNetwork:
    return PlanNetwork.load(
        specification(directory, switches=switches, inputs=(X,), outputs=(Y,), max_batch_size=BATCH)
    )


def rows(count: int, width: int = WIDTHS[0], seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(count, CHANNELS, ROWS, width)).astype(np.float32)


def close(found: Any, expected: Any) -> bool:
    return np.allclose(found, expected, rtol=1e-3, atol=1e-3)


def try_answers(directory: Path) -> dict[str, Any]:
    """Each way against numpy: batches and widths that grow, go back and recur; what is refused in between."""
    shapes = [(1, 16), (BATCH, 16), (1, 16), (3, 64), (BATCH, 64), (1, 16), (5, 33), (BATCH, 64), (3, 64)]
    inputs = {shape: rows(*shape, seed=sum(shape)) for shape in set(shapes)}
    expected = {shape: deepen(given) for shape, given in inputs.items()}
    found: dict[str, Any] = {}
    for way, switches in WAYS.items():
        network = loaded(directory, switches)
        right = []
        for shape in shapes:
            right += [close(network.run({"X": inputs[shape]})["Y"], expected[shape]) for _ in range(5)]
            parts = [{"X": part} for part in np.array_split(inputs[shape], min(3, shape[0]))]
            answers = np.concatenate([answer["Y"] for answer in network.run_all(parts)])
            right.append(close(answers, expected[shape]))
            for count in (0, BATCH + 1):
                right.append(refusal(lambda n=network, c=count: n.run({"X": rows(c)})) != "NOT REFUSED")
        as_many = network._contexts.limit == network._settings.contexts
        found[way] = {"right": all(right), "as many contexts as asked": as_many, **_told(network)}
        network.close()
    return found


def try_any_order(directory: Path, runs: int = 600) -> dict[str, bool]:
    """Random shapes and requests: each way agrees with the network that has all switches off."""
    plain, choose = loaded(directory, _ALL_OFF), random.Random(0)
    ways = {way: loaded(directory, switches | {"graph_after": "2"}) for way, switches in WAYS.items()}
    ways["three contexts"] = loaded(directory, {"contexts": "3", "graph_after": "2"})
    right = dict.fromkeys(ways, True)
    for run in range(runs):
        given = rows(choose.choice([1, 1, 2, 7, BATCH]), choose.choice(WIDTHS), seed=run)
        expected = plain.run({"X": given})["Y"]
        cut = choose.randrange(len(given))
        requests = [{"X": part} for part in (given[:cut], given[cut:]) if len(part)]
        for way, network in ways.items():
            for _ in range(choose.choice([1, 1, 3])):
                answers = network.run_all(requests)
                right[way] &= close(np.concatenate([answer["Y"] for answer in answers]), expected)
    for network in (plain, *ways.values()):
        network.close()
    return right


def try_times(directory: Path) -> dict[str, dict[str, dict[str, float]]]:
    """µs per execution, p50 and p90: each workload with each way, in turns."""
    workloads: dict[str, Sequence[Sequence[Any]]] = {
        "1 row": [[rows(1)]],
        "16 rows": [[rows(BATCH)]],
        "16 rows, wide": [[rows(BATCH, 64)]],
        "16 requests of 1 row": [[rows(1, seed=seed) for seed in range(BATCH)]],
        "2 widths in turn": [[rows(4, width)] for width in WIDTHS[:2]],
        "16 shapes in turn": [[rows(count, width)] for width in WIDTHS for count in (1, 2, 4, 8)],
        "40 shapes in turn": [[rows(count, width)] for width in WIDTHS for count in range(1, 11)],  # over the limit
    }
    networks = {way: loaded(directory, switches) for way, switches in WAYS.items()}
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, turns in workloads.items():
        batches = [[{"X": array} for array in arrays] for arrays in turns]
        times: dict[str, list[float]] = {way: [] for way in networks}
        for network in networks.values():
            _times_us(lambda batch, n=network: n.run_all(batch), batches, WARM_UP + 4 * len(batches))
        for _ in range(ROUNDS):
            for way, network in networks.items():
                times[way] += _times_us(lambda batch, n=network: n.run_all(batch), batches, RUNS)
        found[name] = {way: _percentiles(values) for way, values in times.items()}
    for network in networks.values():
        network.close()
    return found


def try_costs(directory: Path) -> dict[str, Any]:
    """What the first executions of a shape cost, and how much of the GPU's memory each context keeps."""
    device = open_device(0)
    network = loaded(directory)
    network.run({"X": rows(BATCH, 64)})  # so that nothing grows below
    shapes = [(count, width) for width in WIDTHS for count in (1, 2, 4)]
    before = device.call("cudaMemGetInfo")
    firsts = [_times_us(lambda given: network.run({"X": given}), [rows(*shape)], 6) for shape in shapes]
    after = device.call("cudaMemGetInfo")
    columns = ["a context, then the first", "second", "third, then capturing", "first launch", "next", "next but one"]
    costs = {
        name: round(statistics.median(times)) for name, times in zip(columns, zip(*firsts, strict=True), strict=True)
    }
    network.close()
    device.close()
    return {
        "executions of a new shape, µs": costs,
        "MiB per context and graph": round((before - after) / len(shapes) / 2**20, 2),
        "activations, MiB": round(network._contexts._engine.activation_size / 2**20, 2),
        **_told(network),
    }


def try_unshared(directory: Path) -> dict[str, Any]:
    """A plan whose profiles contexts cannot share (8.6 by default) says so and is right all the same."""
    network = loaded(directory)
    right = []
    for count in (1, 1, 1, 1, BATCH, BATCH, 1, 1, 1, 1):
        given = rows(count, seed=len(right))
        right.append(close(network.run({"X": given})["Y"], deepen(given)))
    network.close()
    return {"right": all(right), "one context": network._contexts.limit == 1, **_told(network)}


def try_gpu_arrays(directory: Path) -> dict[str, Any]:
    """Two networks in a row whose tensor between them stays on the GPU, against the way over the host."""
    first, second, host = loaded(directory, {"gpu_outputs": "true"}), loaded(directory), loaded(directory)
    found: dict[str, Any] = {}

    def over_gpu(given: Any) -> Any:
        return second.run({"X": array_from(capsule_from(first.run({"X": given})["Y"]))})["Y"]

    def over_host(given: Any) -> Any:
        return second.run({"X": host.run({"X": given})["Y"]})["Y"]

    for count, width in ((1, 16), (BATCH, 64), (3, 33)):
        given = rows(count, width)
        expected = deepen(deepen(given))
        found[f"{count} x {width}"] = all(close(over_gpu(given), expected) for _ in range(6))
    kept = [(given, first.run({"X": given})["Y"]) for given in (rows(2, seed=seed) for seed in range(6))]
    own = [close(second.run({"X": array})["Y"], deepen(deepen(given))) for given, array in kept]
    found["earlier outputs are still right"] = all(own)
    mixed = [{"X": rows(1)}, {"X": kept[0][1]}, {"X": rows(2)}]
    plain = [{"X": rows(1)}, {"X": deepen(kept[0][0])}, {"X": rows(2)}]
    pairs = zip(second.run_all(mixed), plain, strict=True)
    found["requests from both sides"] = all(close(answer["Y"], deepen(inputs["X"])) for answer, inputs in pairs)
    for count in (1, BATCH):
        for name, way in (("GPU", over_gpu), ("host", over_host)):
            found[f"{count} rows over the {name}, µs"] = _percentiles(_times_us(way, [rows(count)], RUNS * 3))
    for network in (first, second, host):
        network.close()
    return found


def _told(network: PlanNetwork) -> dict[str, Any]:
    return {"contexts": network._contexts.limit, "notes": network.notes, "warnings": network.warnings}


def _times_us(do: Callable[[Any], Any], arguments: Sequence[Any], runs: int) -> list[float]:
    times = []
    for run in range(runs):
        start = time.perf_counter_ns()
        do(arguments[run % len(arguments)])
        times.append((time.perf_counter_ns() - start) / 1000)
    return times


def _percentiles(times: Sequence[float]) -> dict[str, float]:
    return {f"p{share}": round(float(np.percentile(times, share)), 1) for share in (50, 90)}
