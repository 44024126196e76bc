"""`Client` and `AsyncClient` over a fake transport: every case through both."""

from __future__ import annotations

import asyncio
import math
import threading

import numpy as np
import pytest
from fake_transport import AsyncFakeTransport, FakeTransport

import tricade_client
from tricade_client import (
    AsyncClient,
    BadInput,
    Client,
    ClientClosed,
    NotFound,
    ServerRefused,
    Timeout,
    TooLarge,
    TricadeError,
    Unavailable,
)


class Blocking:
    """`Client`, in the words that both have."""

    fake = FakeTransport

    def __init__(self, transport, **settings):
        self.client = Client(transport=transport, **settings)

    def detect(self, images, **options):
        return self.client.detect(images, **options)

    def stream(self, images, **options):
        return list(self.client.stream(images, **options))

    def first(self, images, **options):
        """The first of a stream that is then left."""
        stream = self.client.stream(images, **options)
        found = next(stream)
        stream.close()
        return found

    def close(self):
        self.client.close()


class Asyncio:
    """`AsyncClient`, each call in one event loop."""

    fake = AsyncFakeTransport

    def __init__(self, transport, **settings):
        self.client = AsyncClient(transport=transport, **settings)

    def detect(self, images, **options):
        return asyncio.run(self.client.detect(images, **options))

    def stream(self, images, **options):
        async def collected():
            return [found async for found in self.client.stream(images, **options)]

        return asyncio.run(collected())

    def first(self, images, **options):
        async def one():
            stream = self.client.stream(images, **options)
            found = await anext(stream)
            await stream.aclose()
            return found

        return asyncio.run(one())

    def close(self):
        asyncio.run(self.client.close())


@pytest.fixture(params=[Blocking, Asyncio])
def flavour(request):
    return request.param


def lengths(results):
    return [len(result) for result in results]


def test_all_names_are_there():
    assert sorted(tricade_client.__all__) == tricade_client.__all__
    public = {name for name, value in vars(tricade_client).items() if isinstance(value, type)}
    assert public <= set(tricade_client.__all__) == {n for n in tricade_client.__all__ if hasattr(tricade_client, n)}


@pytest.mark.parametrize(
    ("images", "found", "asked"),
    [
        ([], [], []),
        ([b"0"], [0], [(b"0",)]),
        ([b"3", b"0"], [3, 0], [(b"3", b"0")]),
        ([b"1", b"2", b"0", b"4", b"5"], [1, 2, 0, 4, 5], [(b"1", b"2"), (b"0", b"4"), (b"5",)]),
        ((b"1", b"2", b"3"), [1, 2, 3], [(b"1", b"2"), (b"3",)]),
    ],
)
def test_lists_in_requests_of_the_servers_limit(flavour, images, found, asked):
    transport = flavour.fake()
    client = flavour(transport)
    assert lengths(client.detect(images)) == found
    assert sorted(transport.asked) == sorted(asked)
    client.detect(images)
    assert transport.limits_read == (len(images) > 1)


def test_one_image_needs_no_limit(flavour):
    transport = flavour.fake()
    assert len(flavour(transport).detect(b"3")) == 3
    assert transport.limits_read == 0


def test_a_limit_that_is_not_told(flavour):
    transport = flavour.fake(max_images=None)
    assert lengths(flavour(transport).detect([b"1"] * 5)) == [1] * 5
    assert transport.asked == [(b"1",) * 5]


def test_a_limit_is_read_again_after_a_refusal(flavour):
    transport = flavour.fake()
    client = flavour(transport)
    with pytest.raises(ServerRefused):
        client.detect([b"1", b"bad"])
    transport.max_images = "1"
    client.detect([b"1", b"2"])
    assert transport.asked[1:] == [(b"1",), (b"2",)]


def test_options_reach_the_request(flavour):
    transport = flavour.fake()
    client = flavour(transport, headers={"Tenant": "a", "x": "1"}, timeout_s=9)
    client.detect(b"1", threshold=0.5, outputs=["boxes"], headers={"traceparent": "00-ab", "X": "2"}, timeout_s=3)
    client.detect(b"1")
    first, second = transport.requests
    assert (first.model, first.inputs[1].data.tolist(), first.outputs) == ("text", [0.5], ("COUNT", "BOXES"))
    assert (len(second.inputs), second.outputs) == (1, ())
    assert transport.contexts[0].headers == {"tenant": "a", "x": "2", "traceparent": "00-ab"}
    assert [context.deadline.timeout_s for context in transport.contexts] == [3, 9]
    assert 2 < transport.contexts[0].deadline.left_s() <= 3


@pytest.mark.parametrize(
    ("images", "index", "message"),
    [
        (b"bad", 0, "image: cannot be decoded"),
        ([b"1", b"2", b"3", b"bad"], 3, "image 3: cannot be decoded"),
    ],
)
def test_a_refusal_names_the_callers_image(flavour, images, index, message):
    with pytest.raises(ServerRefused) as refused:
        flavour(flavour.fake()).detect(images)
    assert (str(refused.value), refused.value.image) == (message, index)


def test_a_refusal_names_the_callers_file(flavour, tmp_path):
    path = tmp_path / "x.jpg"
    path.write_bytes(b"bad")
    with pytest.raises(ServerRefused) as refused:
        flavour(flavour.fake()).detect([b"1", b"1", path])
    assert str(refused.value) == f"image 2 ({path}): cannot be decoded"


@pytest.mark.parametrize(
    ("models", "kind", "message"),
    [
        (("a", "a_preprocess", "a_crop", "b"), NotFound, "no pipeline 'nope' is ready there; it has a; name one"),
        ((), NotFound, "it has none"),
        (None, NotFound, "see which there are: tricade status"),
        (("nope", "nope_preprocess"), Unavailable, "though the server has it; see why: tricade status"),
    ],
)
def test_an_unknown_pipeline(flavour, models, kind, message):
    with pytest.raises(kind, match=message):
        flavour(flavour.fake(models=models), pipeline="nope").detect(b"1")


def test_a_server_that_stops_is_unavailable(flavour):
    """While it drains it knows no models and lists none: not the pipeline's name is wrong."""
    transport = flavour.fake(models=None)
    transport.unknown = "has no available versions"
    with pytest.raises(Unavailable, match="no pipeline 'nope' is ready there"):
        flavour(transport, pipeline="nope").detect(b"1")


@pytest.mark.parametrize("in_flight", [1, 3])
def test_streams_keep_order_and_bound(flavour, in_flight):
    transport = flavour.fake(waits_for=in_flight)
    found = flavour(transport).stream((f"{n % 5}".encode() for n in range(20)), in_flight=in_flight, timeout_s=20)
    assert lengths(found) == [n % 5 for n in range(20)]
    assert transport.most == in_flight


def test_streams_of_nothing(flavour):
    assert flavour(flavour.fake()).stream([]) == []


def test_streams_read_what_they_need(flavour):
    read = []
    images = (read.append(n) or b"1" for n in range(100))
    assert len(flavour(flavour.fake()).first(images, in_flight=4)) == 1
    assert len(read) == 4


def test_streams_end_at_an_error(flavour):
    with pytest.raises(ServerRefused, match="image: cannot be decoded"):
        flavour(flavour.fake()).stream([b"1", b"bad", b"1"])


def test_streams_give_errors_on_demand(flavour):
    found = flavour(flavour.fake()).stream([b"1", b"bad", "no.jpg", 5, b"2"], return_errors=True)
    assert [type(one).__name__ for one in found] == ["Result", "ServerRefused", "BadInput", "BadInput", "Result"]


def test_a_frame_may_be_used_again(flavour):
    """A camera loop that fills one array: each request holds the pixels of its own time."""
    frame = np.zeros((2, 2, 3), np.uint8)

    def frames():
        for n in range(6):
            frame[:] = n
            yield frame

    transport = flavour.fake()
    flavour(transport).stream(frames(), in_flight=6)
    assert {asked[0][54] for asked in transport.asked} == set(range(6))  # a BMP's pixels follow 54 bytes


def test_a_deadline_holds_for_a_whole_list(flavour):
    with pytest.raises(Timeout, match=r"no answer within 0\.05 s"):
        flavour(flavour.fake(waits_for=99)).detect([b"1"] * 3, timeout_s=0.05)


def test_closing(flavour):
    transport = flavour.fake()
    client = flavour(transport)
    client.detect(b"1")
    client.close()
    client.close()
    assert transport.closed == 1
    for call in (client.detect, lambda image: client.stream([image])):
        with pytest.raises(ClientClosed, match="make a new one"):
            call(b"1")


def test_nothing_is_opened_before_the_first_call():
    with Client("no.such.host:1") as client:
        assert client.detect([]) == []


def test_one_client_in_many_threads():
    client, wrong = Client(transport=FakeTransport()), []

    def calls(count):
        wrong.extend(1 for _ in range(50) if len(client.detect(f"{count}".encode())) != count)

    threads = [threading.Thread(target=calls, args=(count,)) for count in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_asyncio_takes_asynchronous_iterables():
    async def run():
        async def images():
            for n in (3, 0, 1):
                yield f"{n}".encode()

        async with AsyncClient(transport=AsyncFakeTransport()) as client:
            return [len(found) async for found in client.stream(images())]

    assert asyncio.run(run()) == [3, 0, 1]


def test_a_cancelled_call_leaves_no_task():
    async def run():
        transport = AsyncFakeTransport(waits_for=99)
        client = AsyncClient(transport=transport)
        call = asyncio.create_task(client.detect([b"1"] * 6))
        while transport.most < 3:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "localhost"},
        {"url": "http://localhost:8000"},
        {"timeout_s": 0},
        {"timeout_s": math.nan},
        {"headers": {"a b": "c"}},
        {"headers": {"a": "ü"}},
        {"in_flight": 0},
        {"encoding": "gif"},
    ],
)
def test_settings_are_checked(settings):
    with pytest.raises(BadInput, match="expected"):
        Client(**settings)


@pytest.mark.parametrize("url", ["localhost:8001", "10.0.0.1:80", "[::1]:8001", "unix:/run/triton.sock"])
def test_urls(url):
    Client(url)


def test_a_misspelt_option_is_no_option():
    with pytest.raises(TypeError, match="treshold"):
        Client(transport=FakeTransport()).detect(b"1", treshold=0.5)


def test_one_tree():
    kinds = [getattr(tricade_client, name) for name in tricade_client.__all__]
    errors = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)}
    assert all(issubclass(kind, TricadeError) for kind in errors)
    assert TooLarge in errors
