"""Errors of gRPC in our own words, and connections; both kinds of client, faked one level lower."""

from __future__ import annotations

import asyncio
import math
import subprocess
from concurrent import futures

import grpc
import pytest
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceServicer, add_GRPCInferenceServiceServicer_to_server

from tricade_client import (
    BadInput,
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
from tricade_client.triton import Tls, TritonTransport, asyncio_transport, blocking_transport

REQUEST = request_from_images("text", [b"1"], threshold=0.5, outputs=("COUNT",))
CONTEXT = Context({"traceparent": "00"}, Deadline(math.inf))


class Failed(grpc.RpcError):
    """What gRPC raises."""

    def __init__(self, status, details=""):
        super().__init__(details)
        self.status, self.said = status, details

    def code(self):
        return self.status

    def details(self):
        return self.said


class Blocking:
    """A `GRPCInferenceServiceStub` that raises, or answers and notes what it was asked."""

    def __init__(self, error=None):
        self.error, self.asked, self.closed = error, [], 0

    def ModelInfer(self, message, **options):  # noqa: N802
        self.asked.append((message, options))
        if self.error:
            raise self.error
        answer = messages.ModelInferResponse()
        answer.outputs.add(name="COUNT", datatype="INT32", shape=[1])
        answer.raw_output_contents.append(b"\x05\0\0\0")
        return answer

    def ModelConfig(self, message, **_):  # noqa: N802
        assert message.name == "text_preprocess"
        answer = messages.ModelConfigResponse()
        answer.config.parameters["max_images"].string_value = "4"
        return answer

    def RepositoryIndex(self, message, **_):  # noqa: N802
        answer = messages.RepositoryIndexResponse()
        for name in ("a", "b", "a"):
            answer.models.add(name=name)
        return answer

    def close(self):
        self.closed += 1


class Asyncio(Blocking):
    """The same with coroutines."""

    async def ModelInfer(self, message, **options):  # noqa: N802
        return super().ModelInfer(message, **options)

    async def ModelConfig(self, message, **options):  # noqa: N802
        return super().ModelConfig(message, **options)

    async def RepositoryIndex(self, message, **options):  # noqa: N802
        return super().RepositoryIndex(message, **options)

    async def close(self):
        super().close()


def over(service):
    return TritonTransport(service, service.close, "here:1")


@pytest.fixture(params=[(Blocking, finished), (Asyncio, asyncio.run)], ids=["blocking", "asyncio"])
def flavour(request):
    return request.param


def test_answers(flavour):
    fake, run = flavour
    service = fake()
    transport = over(service)
    assert run(transport.infer(REQUEST, CONTEXT))["COUNT"].tolist() == [5]
    assert run(transport.parameters("text_preprocess", CONTEXT)) == {"max_images": "4"}
    assert run(transport.models(CONTEXT)) == ("a", "b")
    ((message, options),) = service.asked
    assert options == {"metadata": (("traceparent", "00"),), "timeout": None}
    assert message.model_name == "text"
    assert [tensor.name for tensor in message.inputs] == ["IMAGE", "THRESHOLD"]
    assert [tensor.name for tensor in message.outputs] == ["COUNT"]
    run(transport.close())
    assert service.closed == 1


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, ServerRefused, "^said$"),
        (grpc.StatusCode.PERMISSION_DENIED, ServerRefused, "^said$"),
        (grpc.StatusCode.NOT_FOUND, NotFound, "^here:1: said$"),
        (grpc.StatusCode.UNAVAILABLE, Unavailable, "^here:1: said; is it there"),
        (grpc.StatusCode.CANCELLED, Unavailable, "^here:1: said"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Timeout, "^here:1: no answer within inf s; give more timeout_s"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, TooLarge, "^here:1: said; send fewer"),
        (grpc.StatusCode.INTERNAL, ServerFailed, "^here:1: said; see the server's log$"),
        (grpc.StatusCode.DATA_LOSS, ServerFailed, "^here:1: said"),
    ],
)
def test_each_status_has_its_error(flavour, status, kind, message):
    fake, run = flavour
    error = Failed(status, "said\n\nAt:\n a traceback")
    with pytest.raises(kind, match=message) as raised:
        run(over(fake(error)).infer(REQUEST, CONTEXT))
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [Failed(grpc.StatusCode.CANCELLED), ValueError("closed channel")])
def test_a_call_that_closing_ends(flavour, error):
    fake, run = flavour
    transport = over(fake(error))
    run(transport.close())
    with pytest.raises(ClientClosed, match="the client is closed"):
        run(transport.infer(REQUEST, CONTEXT))


def test_faults_of_our_own_stay_what_they_are(flavour):
    fake, run = flavour
    with pytest.raises(ValueError, match="a fault"):
        run(over(fake(ValueError("a fault"))).infer(REQUEST, CONTEXT))


def test_a_deadline_that_has_passed_sends_nothing(flavour):
    fake, run = flavour
    service = fake()
    with pytest.raises(Timeout, match="no answer within 1 s"):
        run(over(service).infer(REQUEST, Context({}, Deadline(1, start_s=-1e9))))
    assert service.asked == []


class Service(GRPCInferenceServiceServicer):
    """Answers as the fake does; the name of a model is whether the caller showed a certificate."""

    def RepositoryIndex(self, message, context):  # noqa: N802
        answer = messages.RepositoryIndexResponse()
        answer.models.add(name="known" if context.auth_context().get("x509_common_name") else "unknown")
        return answer


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """One that signs itself, for localhost; PEM files: certificate, key."""
    folder = tmp_path_factory.mktemp("tls")
    crt, key = folder / "crt.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*new, "-keyout", key, "-out", crt], check=True, capture_output=True)
    return crt, key


@pytest.fixture
def tls_url(certificate):
    """A server that wants to see a certificate."""
    crt, key = (file.read_bytes() for file in certificate)
    server = grpc.server(futures.ThreadPoolExecutor(1))
    add_GRPCInferenceServiceServicer_to_server(Service(), server)
    proof = grpc.ssl_server_credentials([(key, crt)], root_certificates=crt, require_client_auth=True)
    port = server.add_secure_port("localhost:0", proof)
    server.start()
    yield f"localhost:{port}"
    server.stop(None).wait()


@pytest.mark.parametrize("opened", [blocking_transport, asyncio_transport], ids=["blocking", "asyncio"])
def test_tls_with_the_callers_own_certificate(opened, certificate, tls_url):
    crt, key = certificate

    async def models(tls):
        transport = opened(tls_url, tls)
        try:
            return await transport.models(Context({}, Deadline(10)))
        finally:
            await transport.close()

    assert asyncio.run(models(Tls(crt, key, crt))) == ("known",)
    with pytest.raises(Unavailable):
        asyncio.run(models(Tls(crt)))
    with pytest.raises(BadInput, match=r"tls: expected PEM files, these are none: .*gone\.pem"):
        asyncio.run(models(Tls(crt.with_name("gone.pem"))))
