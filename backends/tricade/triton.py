"""The edge to Triton's Python stub: the only file that imports `triton_python_backend_utils`."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import triton_python_backend_utils as pb_utils

from .batch import run_together
from .dlpack import DeviceArray, array_from, capsule_from
from .errors import NetworkFailed, StageError
from .stage import Arrays, Call, Model, ModelSpec, Network, Stage, spec_from_config

# A stage's calls to other models in flight at once; each waits in a thread of its own.
CALLS_AT_ONCE = 8
STOPPING = "Server not ready"  # what a call to another model gets, as INTERNAL, once Triton is told to end


def model_of(kind: type[Stage] | type[Network]) -> type[Instance]:
    """The class Triton wants in a `model.py`, holding a stage or a network."""
    return type("TritonPythonModel", (Instance,), {"kind": kind})


class Instance:
    """Loads once, answers every request of an execution on its own, never raises out of `execute`."""

    kind: type[Stage] | type[Network]

    def initialize(self, args: dict[str, str]) -> None:
        """Called by the stub; what is raised here is the reason Triton gives for not loading the model."""
        cv2.setNumThreads(1)  # instances are the parallelism
        self.spec = _spec(args)
        self.model: Model = self.kind.load(self.spec)
        self.model.warm_up()
        self.answers = self._together if isinstance(self.model, Network) else self._one_by_one
        self.pool = ThreadPoolExecutor(CALLS_AT_ONCE)
        for note in self.model.notes:
            pb_utils.Logger.log_info(f"{self.spec.name}: {note}")
        self.warned = 0
        self._warn()

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Called by the stub; one response a request."""
        try:
            answers = self.answers(requests)
        except Exception as error:
            answers = [self._unforeseen(error)] * len(requests)
        self._warn()
        return [self._response(request, answer) for request, answer in zip(requests, answers, strict=True)]

    def finalize(self) -> None:
        """Called by the stub when the model is unloaded."""
        self.pool.shutdown(wait=False)
        self.model.close()

    def _together(self, requests: Sequence[Any]) -> list[Arrays | StageError]:
        return run_together(cast(Network, self.model), [_inputs(request) for request in requests])

    def _one_by_one(self, requests: Sequence[Any]) -> list[Arrays | StageError]:
        return [self._process(cast(Stage, self.model), request) for request in requests]

    def _process(self, stage: Stage, request: Any) -> Arrays | StageError:
        if stage.asks_first and request.is_cancelled():
            return Cancelled("the request was cancelled")
        try:
            return stage.process(_inputs(request), _infer_within(request, self.pool))
        except StageError as error:
            return error
        except Exception as error:
            return self._unforeseen(error)

    def _warn(self) -> None:
        """Tell the log what the model has to say that it had not to say before."""
        if len(self.model.warnings) > self.warned:
            for warning in self.model.warnings[self.warned :]:
                pb_utils.Logger.log_warn(f"{self.spec.name}: {warning}")
            self.warned = len(self.model.warnings)

    def _response(self, request: Any, answer: Arrays | StageError) -> Any:
        try:
            return _response(request, answer)
        except Exception as error:
            return _response(request, self._unforeseen(error))

    def _unforeseen(self, error: Exception) -> StageError:
        """A fault of ours: told in the log, answered like any other error."""
        pb_utils.Logger.log_error(f"{self.spec.name}: {traceback.format_exc()}")
        return StageError(f"{self.spec.name}: internal error: {type(error).__name__}: {error}")


class Cancelled(StageError):
    """Nobody waits for the answer any more."""

    triton_code = "CANCELLED"


def _spec(args: dict[str, str]) -> ModelSpec:
    """Triton's arguments to `initialize` in our own terms."""
    on_gpu = args["model_instance_kind"] == "GPU"
    return spec_from_config(
        json.loads(args["model_config"]),
        directory=Path(args["model_repository"]),
        version=int(args["model_version"]),
        device_id=int(args["model_instance_device_id"]) if on_gpu else None,
    )


def _inputs(request: Any) -> Arrays:
    return {tensor.name(): _array(tensor) for tensor in request.inputs()}


def _array(tensor: Any) -> Any:
    """As it lies: on the GPU only where the model has FORCE_CPU_ONLY_INPUT_TENSORS at no."""
    return tensor.as_numpy() if tensor.is_cpu() else array_from(tensor.to_dlpack())


def _response(request: Any, answer: Arrays | StageError) -> Any:
    if isinstance(answer, StageError):
        code = getattr(pb_utils.TritonError, answer.triton_code)
        return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(answer), code))
    wanted = request.requested_output_names()
    return pb_utils.InferenceResponse([_output(name, answer[name]) for name in wanted if name in answer])


def _output(name: str, array: Any) -> Any:
    if isinstance(array, DeviceArray):
        return pb_utils.Tensor.from_dlpack(name, capsule_from(array))
    return pb_utils.Tensor(name, np.ascontiguousarray(array))


def _infer_within(request: Any, pool: ThreadPoolExecutor) -> Callable[[Sequence[Call]], list[Arrays]]:
    """Calls to other models on behalf of `request`, all at once."""

    def infer(calls: Sequence[Call]) -> list[Arrays]:
        if not calls:
            return []
        responses = list(pool.map(lambda call: _exec(call, request), calls))
        return [_answer(call, response) for call, response in zip(calls, responses, strict=True)]

    return infer


def _exec(call: Call, within: Any) -> Any:
    return pb_utils.InferenceRequest(
        model_name=call.model,
        requested_output_names=list(call.outputs),
        inputs=[_output(name, array) for name, array in call.inputs.items()],
        timeout=within.timeout(),
        preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0),
        trace=within.trace(),
    ).exec()


def _answer(call: Call, response: Any) -> Arrays:
    if response.has_error():
        error = response.error()
        code = "UNAVAILABLE" if STOPPING in error.message() else _code_name(error.code())
        raise NetworkFailed(f"{call.model}: {error.message()}", triton_code=code)
    return {name: pb_utils.get_output_tensor_by_name(response, name).as_numpy() for name in call.outputs}


def _code_name(code: Any) -> str:
    """The name of a code in `TritonError`, whose values cannot be keys."""
    names = ("NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED")
    return next((name for name in names if getattr(pb_utils.TritonError, name) == code), "INTERNAL")
