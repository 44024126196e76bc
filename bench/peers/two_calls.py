"""The client does the work between the networks: tricade's Triton is asked for the detector, then for the classifiers.

Its own stages run here, so that nothing but the way differs. Batches of a classifier beyond one are sent at once, and
as in the ensemble the costliest follows them. Tensors travel in the requests; this server keeps shared memory to
itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from tritonclient import grpc as triton
from tritonclient.utils import np_to_triton_dtype

from tricade.stage import Arrays, Call

from ..answers import Answer, answer_from
from ..load import Call as Ask
from .pipeline import OneSet, Place, image_from

CALL_S = 120.0


class TwoCalls:
    """A contestant; `url` is the gRPC endpoint of tricade's server."""

    name = "two-calls"

    def __init__(self, url: str, place: Place) -> None:
        self._url, self._place = url, place
        self._stack = ExitStack()

    def __enter__(self) -> Ask:
        client = self._stack.enter_context(triton.InferenceServerClient(self._url))
        pipeline = RemotePipeline(self._place.repository, self._place.pipeline, client)

        def call(picture: bytes) -> Answer:
            return answer_from(pipeline(image_from(picture)))

        return call

    def __exit__(self, *exception: object) -> None:
        self._stack.close()


class RemotePipeline(OneSet):
    """Stages here, networks at a server."""

    def __init__(self, repository: Path, name: str, client: Any) -> None:
        super().__init__(repository, name)
        self._remote = {
            step.model_name: RemoteNetwork(client, step.model_name, tuple(step.output_map))
            for step in self.ensemble.ensemble_scheduling.step
            if step.model_name in self.networks
        }
        self.networks = {model: network.run for model, network in self._remote.items()}

    def _infer(self, calls: Sequence[Call]) -> list[Arrays]:
        """All under way before the first is waited for."""
        sent = [self._remote[call.model].send(call.inputs) for call in calls]
        return [answer.result(CALL_S) for answer in sent]


class RemoteNetwork:
    """A network that a server runs."""

    def __init__(self, client: Any, model: str, outputs: tuple[str, ...]) -> None:
        self._client, self._model, self._outputs = client, model, outputs

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """All outputs for one batch."""
        return self._read(self._client.infer(self._model, _inputs(inputs), client_timeout=CALL_S))

    def send(self, inputs: Arrays) -> Future[Arrays]:
        """Do not wait for the answer."""
        future: Future[Arrays] = Future()
        self._client.async_infer(
            self._model, _inputs(inputs), callback=partial(self._answered, future), client_timeout=CALL_S
        )
        return future

    def _answered(self, future: Future[Arrays], result: Any, error: Exception | None) -> None:
        if error is None:
            future.set_result(self._read(result))
        else:
            future.set_exception(error)

    def _read(self, result: Any) -> dict[str, NDArray[Any]]:
        return {name: result.as_numpy(name) for name in self._outputs}


def _inputs(arrays: Arrays) -> list[Any]:
    return [
        triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)).set_data_from_numpy(array)
        for name, array in arrays.items()
    ]
