"""Our backends as a plugin: copied beside Triton's own, with a rendered repository, and a bare `tritonserver`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import cascade
import processes
import pytest
import running
from tritonclient.utils import InferenceServerException

from tricade_client import Client
from tricade_server.backends import OURS
from tricade_server.installation import find_triton
from tricade_tune.host import free_ports


@pytest.fixture(scope="module")
def backends(tmp_path_factory) -> Path:
    """Triton's Python backend with the stub of this Python, and copies of ours."""
    triton = find_triton()
    folder = tmp_path_factory.mktemp("plugin") / "backends"
    shutil.copytree(triton.backends / "python", folder / "python")
    shutil.copy(triton.stub, folder / "python")
    for backend in OURS.iterdir():
        if backend.is_dir() and backend.name != "__pycache__":
            shutil.copytree(backend, folder / backend.name)
    return folder


@pytest.fixture(scope="module")
def bare(backends, squares_repository, tmp_path_factory):
    """The gRPC address of a server started by hand, away from our sources."""
    triton = find_triton()
    grpc, http, metrics = free_ports(3)
    libraries = os.pathsep.join(str(folder) for folder in triton.libraries)
    command = [
        str(triton.binary), f"--model-repository={squares_repository}", f"--backend-directory={backends}",
        "--model-config-name=onnxruntime", "--disable-auto-complete-config",
        "--grpc-address=127.0.0.1", "--http-address=127.0.0.1", "--metrics-address=127.0.0.1",
        f"--grpc-port={grpc}", f"--http-port={http}", f"--metrics-port={metrics}",
    ]  # fmt: skip
    log = tmp_path_factory.mktemp("log") / "triton.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            env=os.environ
            | {"LD_LIBRARY_PATH": libraries, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            cwd=log.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        with running.PlainTriton(f"127.0.0.1:{grpc}") as triton_client:
            processes.wait_for(lambda: ready(triton_client) or process.poll() is not None, timeout_s=60)
            assert process.poll() is None, log.read_text()
        yield f"127.0.0.1:{grpc}"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def ready(triton: running.PlainTriton) -> bool:
    try:
        return bool(triton.client.is_model_ready("squares"))
    except InferenceServerException:
        return False


@pytest.mark.parametrize("count", [0, 1, 8, 9, 40])
def test_a_bare_tritonserver_serves_the_pipeline(bare, count):
    objects = cascade.objects(count, seed=count)
    with Client(bare, "squares") as client:
        result = client.detect(cascade.picture(objects))
    assert result.arrays["BOXES"] == pytest.approx(cascade.expected(objects).boxes, abs=1e-3)
    assert [found.classes["colour"].label for found in result] == list(cascade.expected(objects).colours)


def test_our_folders_do_not_hide_packages(backends):
    """The backend directory is on nobody's path: `import tensorrt` must not find our folder there."""
    script = "import sys; from runpy import run_path; run_path(sys.argv[1]); import tricade; print(tricade.__file__, *sys.path)"
    found = subprocess.run(
        [sys.executable, "-c", script, str(backends / "tricade" / "load.py")],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert found[0] == str(backends / "tricade" / "__init__.py")
    assert str(backends) not in found[1:]
