"""Deep plans behind Triton with switches on and off, one plan after the other on the GPU, and who opens CUDA."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient import grpc

from .graphs import deepen
from .in_process import median_ms
from .served import load, stubs
from .switches import BATCH, WAYS, close, rows

TENSORS = """input [{{name: "{0}" data_type: TYPE_FP32 dims: [8, 16, -1]}}]
output [{{name: "{1}" data_type: TYPE_FP32 dims: [8, 16, -1]}}]
"""
CONFIG = """name: "{name}" platform: "{platform}" max_batch_size: 16
{tensors}{rest}
"""
NETWORK = """instance_group [{{kind: {kind} count: {count}}}]
dynamic_batching {{max_queue_delay_microseconds: 500}}
"""
STEP = (
    '{{model_name: "{0}" model_version: -1 input_map {{key: "X" value: "{1}"}} output_map {{key: "Y" value: "{2}"}}}}'
)
LABEL = """name: "label" backend: "label" max_batch_size: 0
input [{name: "CLASS" data_type: TYPE_INT32 dims: [-1]}]
output [{name: "LABELS" data_type: TYPE_STRING dims: [-1]}]
instance_group [{kind: KIND_CPU count: 1}]
parameters {key: "detector.labels" value {string_value: "detector.txt"}}
"""
# name: parameters, instances
NETWORKS: Mapping[str, tuple[Mapping[str, str], int]] = {
    "off": ({f"plan.{name}": value for name, value in WAYS["all off"].items()}, 1),
    "on": ({}, 1),
    "off_two": ({f"plan.{name}": value for name, value in WAYS["all off"].items()}, 2),
    "on_two": ({}, 2),
    "first": ({"plan.gpu_outputs": "true"}, 1),
    "second": ({"FORCE_CPU_ONLY_INPUT_TENSORS": "no"}, 1),
}
# name: its steps; the tensor in between stays on the GPU, or not
CHAINS = {"over_gpu": ("first", "second"), "over_host": ("on", "off")}


def write_repository(plan: Path, repository: Path, *, kind: str = "KIND_GPU") -> None:
    """NETWORKS of the plan in that folder, CHAINS, and a stage that needs no GPU."""
    for name, (parameters, count) in NETWORKS.items():
        lines = [f'parameters {{key: "{key}" value {{string_value: "{value}"}}}}' for key, value in parameters.items()]
        rest = NETWORK.format(kind=kind, count=count) + "\n".join(lines)
        shutil.copytree(plan, _write(repository, name, "tensorrt_plan", rest), dirs_exist_ok=True)
    for name, (first, second) in CHAINS.items():
        steps = f"{STEP.format(first, 'X', 'middle')}, {STEP.format(second, 'middle', 'Y')}"
        _write(repository, name, "ensemble", f"ensemble_scheduling {{step [{steps}]}}")
    (repository / "label" / "1").mkdir(parents=True)
    (repository / "label" / "config.pbtxt").write_text(LABEL)
    (repository / "label" / "detector.txt").write_text("person\ncar\n")


def _write(repository: Path, name: str, platform: str, rest: str) -> Path:
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    config = CONFIG.format(name=name, platform=platform, tensors=TENSORS.format("X", "Y"), rest=rest)
    (repository / name / "config.pbtxt").write_text(config)
    return folder


def try_served(client: grpc.InferenceServerClient) -> dict[str, Any]:
    """Answers and times of all of them."""
    found: dict[str, Any] = {name: load(client, name) for name in ("label", *NETWORKS, *CHAINS)}
    ready = [name for name in (*NETWORKS, *CHAINS) if found[name].startswith("loaded")]
    found |= {f"{name} is loaded": name in ready for name in (*NETWORKS, *CHAINS)}
    for name in ready:
        shapes = [(1, 16), (BATCH, 64), (3, 33), (1, 16), (BATCH, 64)] * 4  # often enough for graphs
        found[f"{name} agrees with numpy"] = all(_asked(client, name, *shape) for shape in shapes)
    for count in (1, BATCH):
        for name in [name for name in ("off", "on", *CHAINS) if name in ready]:
            given = rows(count)
            found[f"{name}, {count} rows, served p50 ms"] = median_ms(lambda n=name, g=given: _infer(client, n, g))
    for name in [name for name in ("off", "on", "off_two", "on_two") if name in ready]:
        found[f"{name}, 32 callers"] = _merged(client, name)
    found["label answers"] = _labels(client) == [b"car", b"person"]
    return found | try_processes()


def try_processes() -> dict[str, Any]:
    """Which stubs have opened CUDA: only networks may."""
    found = {}
    for pid, model in stubs().items():
        with suppress(OSError):
            maps = Path(f"/proc/{pid}/maps").read_text()
            targets = [_target(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
            devices = sorted({target for target in targets if target.startswith("/dev/nvidia")})
            found[f"{model}, {pid}"] = {"maps libcuda": "libcuda.so" in maps, "holds": devices}
    command = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"]
    listed = []
    with suppress(FileNotFoundError):  # not every image has it
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    cpu = {name: state for name, state in found.items() if name.startswith("label")}
    return {
        "no CUDA where no network is": bool(cpu) and not any(state["holds"] for state in cpu.values()),
        "stubs": found,
        "nvidia-smi": listed,
    }


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


@cache
def _known(count: int, width: int, seed: int, depth: int) -> tuple[Any, Any]:
    """Rows and numpy's answer to them."""
    given = rows(count, width, seed)
    answer = given
    for _ in range(depth):
        answer = deepen(answer)
    return given, answer


def _infer(client: grpc.InferenceServerClient, model: str, given: Any) -> Any:
    tensor = grpc.InferInput("X", list(given.shape), "FP32")
    tensor.set_data_from_numpy(given)
    return client.infer(model, [tensor]).as_numpy("Y")


def _asked(client: grpc.InferenceServerClient, model: str, count: int, width: int, seed: int = 1) -> bool:
    given, expected = _known(count, width, seed, 2 if model in CHAINS else 1)
    return close(_infer(client, model, given), expected)


def _labels(client: grpc.InferenceServerClient) -> list[bytes]:
    tensor = grpc.InferInput("CLASS", [2], "INT32")
    tensor.set_data_from_numpy(np.array([1, 0], np.int32))
    return list(client.infer("label", [tensor]).as_numpy("LABELS"))


def _merged(client: grpc.InferenceServerClient, model: str, callers: int = 32, calls: int = 1600) -> dict[str, Any]:
    """Single rows by many callers at once, of 8 kinds that numpy has answered beforehand."""
    for seed in range(8):
        _known(1, 16, seed, 1)
    start = time.monotonic()
    with ThreadPoolExecutor(callers) as pool:
        right = list(pool.map(lambda call: _asked(client, model, 1, 16, call % 8), range(calls)))
    return {"all right": all(right), "calls/s": round(calls / (time.monotonic() - start))}
