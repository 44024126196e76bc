"""`PlanNetwork` on a real GPU without Triton: right answers, refusals, times, nothing left behind."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from tricade.cuda import open_device
from tricade.errors import BadRequest, EngineMisfit
from tricade.plan_network import PlanNetwork
from tricade.stage import ModelSpec, Tensor

from .graphs import HEIGHT, WIDTH, classify

CROPS = Tensor("CROPS", "UINT8", (HEIGHT, WIDTH, 3))
INDEX, SCORE = Tensor("INDEX", "INT32", (2,)), Tensor("SCORE", "FP32", (2,))
RUNS = 300


def specification(directory: Path, *, switches: Mapping[str, str] | None = None, **changes: Any) -> ModelSpec:
    """A model whose version folder is `directory/1`."""
    settings: dict[str, Any] = {
        "name": directory.name,
        "inputs": (CROPS,),
        "outputs": (INDEX, SCORE),
        "max_batch_size": 16,
        "device_id": 0,
        "parameters": {f"plan.{name}": value for name, value in (switches or {}).items()},
    }
    return ModelSpec(directory=directory, version=1, instances=1, model_file="", **(settings | changes))


def random_crops(rows: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (rows, HEIGHT, WIDTH, 3), np.uint8)


def agrees(crops: Any, index: Any, score: Any) -> bool:
    """Whether the answers to these crops are numpy's."""
    expected_index, expected_score = classify(crops)
    return np.array_equal(index, expected_index) and np.allclose(score, expected_score, atol=1e-4)


def try_classifier(directory: Path) -> dict[str, Any]:
    """Values, refusals and times of the classifier."""
    network = PlanNetwork.load(specification(directory))
    found: dict[str, Any] = {"notes": network.notes}
    for rows in (1, 7, 16, 2):
        crops = random_crops(rows)
        answers = network.run({"CROPS": crops})
        found[f"batch {rows} agrees with numpy"] = agrees(crops, answers["INDEX"], answers["SCORE"])
    for rows in (0, 17):
        found[f"batch {rows}"] = refusal(lambda rows=rows: network.run({"CROPS": random_crops(rows)}))
    for rows in (1, 16):
        crops = random_crops(rows)
        found[f"batch {rows} run p50 ms"] = median_ms(lambda crops=crops: network.run({"CROPS": crops}))
        found[f"batch {rows} split p50 ms"] = split_ms(network, crops)
    network.close()
    return found


def try_two_profiles(directory: Path) -> dict[str, Any]:
    """Two inputs, two outputs, two profiles: widths 1..64 by 8 rows, 65..256 by 4."""
    spec = specification(
        directory,
        inputs=(Tensor("LEFT", "FP32", (-1,)), Tensor("RIGHT", "FP16", (-1,))),
        outputs=(Tensor("SUM", "FP32", (-1,)), Tensor("MORE", "BOOL", (-1,))),
        max_batch_size=8,
    )
    network = PlanNetwork.load(spec)
    found: dict[str, Any] = {}
    for rows, width in ((8, 64), (4, 256), (1, 1), (3, 65), (8, 1)):
        left = np.random.default_rng(rows).normal(size=(rows, width)).astype(np.float32)
        right = np.random.default_rng(width).normal(size=(rows, width)).astype(np.float16)
        answers = network.run({"LEFT": left, "RIGHT": right})
        found[f"{rows} x {width}"] = np.array_equal(answers["SUM"], left + right) and np.array_equal(
            answers["MORE"], left > right
        )
    wide = {"LEFT": np.zeros((8, 65), np.float32), "RIGHT": np.zeros((8, 65), np.float16)}
    found["8 x 65"] = refusal(lambda: network.run(wide))
    network.close()
    return found


def try_misfits(plans: Path) -> dict[str, str]:
    """What loading says of each plan that must not load."""
    tensors = {"inputs": (Tensor("X", "FP32", (4,)),), "outputs": (Tensor("PLACES", "INT32", (-1,)),)}
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "sized by its data": ("places_of_ones", {**tensors, "max_batch_size": 8}),
        "too small": ("classifier_of_8", {}),
        "other type": ("classifier", {"inputs": (Tensor("CROPS", "FP32", CROPS.dims),)}),
        "other name": ("classifier", {"outputs": (INDEX, Tensor("TOP", "FP32", (2,)))}),
        "other size": ("classifier", {"outputs": (INDEX, Tensor("SCORE", "FP32", (3,)))}),
        "no such GPU": ("classifier", {"device_id": 7}),
        "on a processor": ("classifier", {"device_id": None}),
    }
    return {
        name: refusal(lambda plan=plan, changes=changes: PlanNetwork.load(specification(plans / plan, **changes)))
        for name, (plan, changes) in cases.items()
    }


def try_damaged(good: Path, work: Path) -> dict[str, str]:
    """What loading says of damaged plans; each in a process of its own, for it may take that down."""
    data = good.read_bytes()
    middle = len(data) // 2
    damaged = {
        "empty": b"",
        "text": b"version https://git-lfs.github.com/spec/v1\n",
        "cut": data[:middle],
        "first bytes changed": bytes(byte ^ 255 for byte in data[:64]) + data[64:],
        "middle bytes changed": data[:middle] + bytes(64) + data[middle + 64 :],
    }
    found = {}
    for name, content in damaged.items():
        directory = work / name.replace(" ", "_")
        (directory / "1").mkdir(parents=True)
        (directory / "1" / "model.plan").write_bytes(content)
        found[name] = _load_elsewhere(directory)
    return found


def _load_elsewhere(directory: Path) -> str:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(_load, directory).result()
        except BrokenProcessPool:
            return "PROCESS DIED"


def _load(directory: Path) -> str:
    return refusal(lambda: PlanNetwork.load(specification(directory)))


def try_reloading(directory: Path, times: int = 10) -> dict[str, float]:
    """How much of the GPU's memory is gone after loading, running and closing again and again."""
    device = open_device(0)
    free = []
    for _ in range(times):
        network = PlanNetwork.load(specification(directory))
        network.run({"CROPS": random_crops(16)})
        network.close()
        free.append(device.call("cudaMemGetInfo") / 2**20)
    device.close()
    return {"MiB lost from the second to the last": free[1] - free[-1]}


def refusal(do: Callable[[], Any]) -> str:
    """The words it is refused in."""
    try:
        do()
    except (BadRequest, EngineMisfit) as error:
        return f"{type(error).__name__}: {error}"
    return "NOT REFUSED"


def median_ms(do: Callable[[], Any]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        do()
        times.append((time.perf_counter() - start) * 1000)
    return round(statistics.median(times[RUNS // 10 :]), 4)


def split_ms(network: PlanNetwork, crops: Any) -> dict[str, float]:
    """The same run with the stream awaited after each part, so that their sum is more than a run takes."""
    parts: dict[str, list[float]] = {"copy in": [], "upload": [], "execute": [], "download": [], "copy out": []}
    device, contexts = network._device, network._contexts
    bound = contexts.bound_to({"CROPS": crops.shape}, kind=False)
    steps: list[Callable[[], Any]] = [
        lambda: network._fill(bound, [{"CROPS": crops}]),
        lambda: [contexts.inputs.upload(place.offset, place.size) for place in bound.inputs.values()],
        lambda: bound.context.raw.execute_async_v3(device.stream),
        lambda: [contexts.outputs.download(place.offset, place.size) for place in bound.outputs.values()],
        lambda: [bound.views[name].copy() for name in network._wanted],
    ]
    for _ in range(RUNS):
        for times, step in zip(parts.values(), steps, strict=True):
            start = time.perf_counter()
            step()
            device.synchronize()
            times.append((time.perf_counter() - start) * 1000)
    return {name: round(statistics.median(values[RUNS // 10 :]), 4) for name, values in parts.items()}
