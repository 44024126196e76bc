"""Errors of gRPC and of tritonclient in our own words; both kinds of client, faked one level lower."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from tricade_client import (
    ClientClosed,
    NotFound,
    ServerFailed,
    ServerRefused,
    Timeout,
    TooLarge,
    Unavailable,
)
from tricade_client.codec import request_from_images
from tricade_client.runtimes import finished
from tricade_client.transport import Context, Deadline
from tricade_client.triton import TritonTransport

REQUEST = request_from_images("text", [b"1"], threshold=0.5, outputs=("COUNT",))
CONTEXT = Context({"traceparent": "00"}, Deadline(math.inf))


class Answer:
    """An `InferResult`."""

    def get_response(self):
        return SimpleNamespace(outputs=[SimpleNamespace(name="COUNT")])

    def as_numpy(self, name):
        return np.array([len(name)])


class Blocking:
    """An `InferenceServerClient` that raises, or answers and notes what it was asked."""

    def __init__(self, error=None):
        self.error, self.asked, self.closed = error, [], 0

    def infer(self, model, **arguments):
        self.asked.append((model, arguments))
        if self.error:
            raise self.error
        return Answer()

    def get_model_config(self, model, **_):
        assert model == "text_preprocess"
        parameters = {"max_images": SimpleNamespace(string_value="4")}
        return SimpleNamespace(config=SimpleNamespace(parameters=parameters))

    def get_model_repository_index(self, **_):
        return SimpleNamespace(models=[SimpleNamespace(name=name) for name in ("a", "b", "a")])

    def close(self):
        self.closed += 1


class Asyncio(Blocking):
    """The same with coroutines."""

    async def infer(self, model, **arguments):
        return super().infer(model, **arguments)

    async def get_model_config(self, model, **arguments):
        return super().get_model_config(model, **arguments)

    async def get_model_repository_index(self, **arguments):
        return super().get_model_repository_index(**arguments)

    async def close(self):
        super().close()


@pytest.fixture(params=[(Blocking, finished), (Asyncio, asyncio.run)], ids=["blocking", "asyncio"])
def flavour(request):
    return request.param


def test_answers(flavour):
    fake, run = flavour
    client = fake()
    transport = TritonTransport(client, "here:1")
    assert run(transport.infer(REQUEST, CONTEXT))["COUNT"].tolist() == [5]
    assert run(transport.parameters("text_preprocess", CONTEXT)) == {"max_images": "4"}
    assert run(transport.models(CONTEXT)) == ("a", "b")
    ((model, arguments),) = client.asked
    assert (model, arguments["client_timeout"], arguments["headers"]) == ("text", None, {"traceparent": "00"})
    assert [tensor.name() for tensor in arguments["inputs"]] == ["IMAGE", "THRESHOLD"]
    assert [tensor.name() for tensor in arguments["outputs"]] == ["COUNT"]
    run(transport.close())
    assert client.closed == 1


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        ("INVALID_ARGUMENT", ServerRefused, "^said$"),
        ("PERMISSION_DENIED", ServerRefused, "^said$"),
        ("NOT_FOUND", NotFound, "^here:1: said$"),
        ("UNAVAILABLE", Unavailable, "^here:1: said; is it there"),
        ("CANCELLED", Unavailable, "^here:1: said"),
        ("DEADLINE_EXCEEDED", Timeout, "^here:1: no answer within inf s; give more timeout_s"),
        ("RESOURCE_EXHAUSTED", TooLarge, "^here:1: said; send fewer"),
        ("INTERNAL", ServerFailed, "^here:1: said; see the server's log$"),
        ("SOMETHING_NEW", ServerFailed, "^here:1: said"),
        (None, ServerFailed, "^here:1: said"),
    ],
)
def test_each_status_has_its_error(flavour, status, kind, message):
    fake, run = flavour
    error = InferenceServerException("said\n\nAt:\n a traceback", status and f"StatusCode.{status}")
    with pytest.raises(kind, match=message) as raised:
        run(TritonTransport(fake(error), "here:1").infer(REQUEST, CONTEXT))
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [InferenceServerException("x", "StatusCode.CANCELLED"), ValueError("closed channel")])
def test_a_call_that_closing_ends(flavour, error):
    fake, run = flavour
    transport = TritonTransport(fake(error), "here:1")
    run(transport.close())
    with pytest.raises(ClientClosed, match="the client is closed"):
        run(transport.infer(REQUEST, CONTEXT))


def test_faults_of_our_own_stay_what_they_are(flavour):
    fake, run = flavour
    with pytest.raises(ValueError, match="a fault"):
        run(TritonTransport(fake(ValueError("a fault")), "here:1").infer(REQUEST, CONTEXT))


def test_a_deadline_that_has_passed_sends_nothing(flavour):
    fake, run = flavour
    client = fake()
    with pytest.raises(Timeout, match="no answer within 1 s"):
        run(TritonTransport(client, "here:1").infer(REQUEST, Context({}, Deadline(1, start_s=-1e9))))
    assert client.asked == []
