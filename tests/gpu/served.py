"""The same plans behind a real Triton, through `backends/tensorrt`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient import grpc

from .in_process import agrees, median_ms, random_crops

BACKENDS = Path(__file__).resolve().parents[2] / "backends"
URL = "localhost:8601"
READY_S = 120

CONFIG = """name: "{name}" platform: "tensorrt_plan" max_batch_size: 16
input [{{name: "CROPS" data_type: TYPE_UINT8 dims: [48, 192, 3]}}]
output [{{name: "INDEX" data_type: TYPE_INT32 dims: [2]}}, {{name: "SCORE" data_type: TYPE_FP32 dims: [2]}}]
instance_group [{{kind: {kind} count: {count}}}]
dynamic_batching {{max_queue_delay_microseconds: 2000}}
"""
PROBE_CONFIG = """name: "probe" backend: "python" max_batch_size: 0
input [{name: "X" data_type: TYPE_INT32 dims: [1]}]
output [{name: "Y" data_type: TYPE_INT32 dims: [1]}]
instance_group [{kind: KIND_AUTO count: 1}]
"""
# Fails in order to say what Triton passes.
PROBE = """class TritonPythonModel:
    def initialize(self, args):
        raise ValueError(f"kind {args['model_instance_kind']}, device {args['model_instance_device_id']}")
"""
# name: plan, instance kind, instances
MODELS = {
    "one": ("classifier", "KIND_AUTO", 1),
    "two": ("classifier", "KIND_GPU", 2),
    "too_small": ("classifier_of_8", "KIND_GPU", 1),
    "on_processor": ("classifier", "KIND_CPU", 1),
    "damaged": ("classifier", "KIND_GPU", 1),
}


def write_repository(plans: Path, repository: Path) -> None:
    """One folder for each of MODELS, and the probe."""
    for name, (plan, kind, count) in MODELS.items():
        shutil.copytree(plans / plan / "1", repository / name / "1")
        (repository / name / "config.pbtxt").write_text(CONFIG.format(name=name, kind=kind, count=count))
    damaged = repository / "damaged" / "1" / "model.plan"
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    (repository / "probe" / "1").mkdir(parents=True)
    (repository / "probe" / "config.pbtxt").write_text(PROBE_CONFIG)
    (repository / "probe" / "1" / "model.py").write_text(PROBE)


@contextmanager
def server(repository: Path, work: Path) -> Iterator[grpc.InferenceServerClient]:
    """Triton over our backends, with no model loaded; its log is `work/server.log`."""
    triton = Path(os.environ["TRITON"])
    stub = triton / "python_backend_stubs" / f"3.{sys.version_info.minor}" / "triton_python_backend_stub"
    backends = work / "backends"
    shutil.copytree(BACKENDS, backends)
    shutil.copytree(triton / "backends" / "python", backends / "python")
    shutil.copy(stub, backends / "python")
    command = [str(triton / "bin" / "tritonserver"), f"--model-repository={repository}"]
    command += [f"--backend-directory={backends}", "--model-control-mode=explicit", "--allow-http=false"]
    command += ["--allow-metrics=false", f"--grpc-port={URL.rpartition(':')[2]}"]
    with (work / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield _ready(process)
        finally:
            process.terminate()
            process.wait(60)


def _ready(process: subprocess.Popen[bytes]) -> grpc.InferenceServerClient:
    client, deadline = grpc.InferenceServerClient(URL), time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(grpc.InferenceServerException):  # the port is not open yet
            if client.is_server_ready():
                return client
        time.sleep(0.2)
    raise SystemExit(f"Triton is not ready within {READY_S} s; see server.log")


def try_served(client: grpc.InferenceServerClient) -> dict[str, Any]:
    """Answers, merging, instances, refusals; whatever fails to load must leave the server as it was."""
    found: dict[str, Any] = {
        name: load(client, name) for name in ("probe", "damaged", "too_small", "on_processor", "one", "two")
    }
    groups = client.get_model_config("one", as_json=True)["config"]["instance_group"]
    found["KIND_AUTO becomes"] = groups
    for rows in (1, 7, 16):
        found[f"batch {rows} agrees with numpy"] = _asked(client, "one", rows)
    found["batch 17"] = _refused(client, 17)
    found["batch 0"] = _refused(client, 0)
    for rows in (1, 16):
        crops = random_crops(rows)
        found[f"batch {rows} served p50 ms"] = median_ms(lambda crops=crops: _infer(client, "one", crops))
    for name in ("one", "two"):
        found[f"{name}, 32 callers"] = _merged(client, name)
    found["stubs of two"] = list(stubs().values()).count("two")
    found["live, and still right"] = client.is_server_live() and _asked(client, "one", 3)
    return found


def load(client: grpc.InferenceServerClient, name: str) -> str:
    start = time.monotonic()
    try:
        client.load_model(name)
    except grpc.InferenceServerException as error:
        return f"refused: {error.message()}"
    return f"loaded in {time.monotonic() - start:.1f} s"


def _infer(client: grpc.InferenceServerClient, model: str, crops: Any) -> tuple[Any, Any]:
    tensor = grpc.InferInput("CROPS", list(crops.shape), "UINT8")
    tensor.set_data_from_numpy(crops)
    answer = client.infer(model, [tensor])
    return answer.as_numpy("INDEX"), answer.as_numpy("SCORE")


def _asked(client: grpc.InferenceServerClient, model: str, rows: int, seed: int = 1) -> bool:
    crops = random_crops(rows, seed)
    return agrees(crops, *_infer(client, model, crops))


def _refused(client: grpc.InferenceServerClient, rows: int) -> str:
    try:
        _infer(client, "one", random_crops(rows))
    except grpc.InferenceServerException as error:
        return f"refused: {error.message()}"
    return "NOT REFUSED"


def _merged(client: grpc.InferenceServerClient, model: str, callers: int = 32, calls: int = 640) -> dict[str, Any]:
    """Single crops by many callers at once: are they right, and how many executions took them?"""
    before, start = _counts(client, model), time.monotonic()
    with ThreadPoolExecutor(callers) as pool:
        right = list(pool.map(lambda seed: _asked(client, model, 1, seed), range(calls)))
    seconds = time.monotonic() - start
    crops, executions = np.subtract(_counts(client, model), before)
    return {
        "right": sum(right),
        "crops": int(crops),
        "executions": int(executions),
        "calls/s with numpy's check": round(calls / seconds),
    }


def _counts(client: grpc.InferenceServerClient, model: str) -> Sequence[int]:
    statistics = client.get_inference_statistics(model).model_stats[0]
    return statistics.inference_count, statistics.execution_count


def stubs() -> dict[int, str]:
    """Processes of Triton's Python stubs, and the models they run."""
    found = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, IndexError):  # no process, or one that ended meanwhile
            arguments = (entry / "cmdline").read_bytes().decode().split("\0")
            if arguments[0].endswith("triton_python_backend_stub"):
                found[int(entry.name)] = arguments[-3].rsplit("_", 2)[0]  # …, model_0_0, DEFAULT, end
    return found
