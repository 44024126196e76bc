"""The whole way in one run: models, repository, Triton, one call, an annotated picture; nothing stays running.

Works in the current directory, which has `pipelines/text.yaml`. IMAGE is the argument, else a picture of its own;
GRPC_PORT in the environment fixes the port.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError
from rich.console import Console

from tricade_build.build import build
from tricade_build.errors import BuildError
from tricade_build.models import fetch
from tricade_cli.drawing import annotated, undrawn
from tricade_cli.table import table_of
from tricade_client import Client, Result, TricadeError
from tricade_server.errors import ServeError
from tricade_server.process import Endpoints
from tricade_server.serve import serving
from tricade_server.signals import interrupt_on

PIPELINE, REPOSITORY, OUT = Path("pipelines/text.yaml"), Path("model_repository"), Path("out")
HOST, PORT = "127.0.0.1", "GRPC_PORT"
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF")
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PAPER, INK, RED, BLUE = (250, 248, 242), (34, 40, 49), (178, 34, 34), (24, 82, 140)

# Text, size, degrees counter-clockwise, left and top of the turned line, colour.
LINES = (
    ("Corner Bakery", 72, 0, (60, 44), INK),
    ("open daily from 7 to 18", 32, 0, (64, 140), BLUE),
    ("Sourdough loaf", 36, 0, (64, 232), INK),
    ("4.80", 36, 0, (520, 232), INK),
    ("Rye with caraway", 36, 0, (64, 296), INK),
    ("5.20", 36, 0, (520, 296), INK),
    ("Two cinnamon buns", 36, 0, (64, 360), INK),
    ("6.00", 36, 0, (520, 360), INK),
    ("this line stands on its head", 34, 180, (64, 446), BLUE),
    ("FRESH TODAY", 42, 14, (640, 130), RED),
    ("quarter turned", 34, 90, (780, 300), BLUE),
    ("Allergens: wheat, rye, milk, eggs. Prices in euro, tax included.", 17, 0, (64, 536), INK),
)


class DemoError(Exception):
    """What was asked for cannot be: IMAGE or GRPC_PORT."""


def main(arguments: list[str]) -> int:
    """Exit code: 0 done, 1 the work failed."""
    interrupt_on(*STOPS)
    try:
        with step("done"):
            demo(*picture_from(arguments[0] if arguments else ""))
    except KeyboardInterrupt:
        return _failed("stopped before the end")
    except (DemoError, BuildError, ServeError, TricadeError, OSError) as error:
        return _failed(str(error))
    return 0


def demo(name: str, picture: bytes) -> None:
    """Everything, step by step; raises what a step raises."""
    endpoints = Endpoints(HOST, *free_ports(os.environ.get(PORT) or "0", "0", "0"))
    prepare()
    result = result_of(picture, endpoints)
    if result:
        Console(width=None if sys.stdout.isatty() else 140).print(table_of(result, name))
    else:
        say(f"{name}: nothing found")
    copy = OUT / f"demo-{name}.png"
    with step(f"the annotated picture is {copy}"), Image.open(BytesIO(picture)) as image:
        written(annotated(image, result), copy)
    if hidden := undrawn(result):
        say(f"  no font here has the characters of {hidden} lines: their numbers in the table stand for them")


def prepare() -> None:
    """The models and the repository, as far as they are not there."""
    with step("the models are in models/text"):
        fetch("text", into=Path("models"))
    with step(f"{PIPELINE} is built into {REPOSITORY}"):
        done = build(PIPELINE, repository=REPOSITORY)
    say(f"  built: {', '.join(done.built) or 'nothing, no network has changed'}")


def result_of(picture: bytes, endpoints: Endpoints) -> Result:
    """The answer of a server that runs for this one call."""
    with ExitStack() as stack:
        with step("Triton has started, loaded and answered a first call"):
            stack.enter_context(serving(REPOSITORY, endpoints, say=lambda line: say(f"  {line}")))
        stack.callback(ignore_signals)  # they must not interrupt the stopping
        with step("one gRPC call"), Client(f"{HOST}:{endpoints.grpc_port}", pipeline="text") as client:
            result = client.detect(picture)
        with step("Triton has stopped"):
            stack.close()
    return result


def picture_from(path: str) -> tuple[str, bytes]:
    """Its name and bytes, checked before anything starts; without a path a picture drawn here."""
    if not path:
        file = written(drawn(), OUT / "bakery.png")
        return file.stem, file.read_bytes()
    file = Path(path).expanduser()
    try:
        picture = file.read_bytes()
    except OSError as error:
        raise DemoError(f"IMAGE: expected a picture, {path} cannot be read: {error.strerror}") from error
    try:
        with Image.open(BytesIO(picture), formats=FORMATS) as image:
            image.load()
    except UnidentifiedImageError as error:
        raise DemoError(f"IMAGE: expected {', '.join(FORMATS)}; {path} is none of them") from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DemoError(f"IMAGE: {path} cannot be decoded: {error}") from error
    return file.stem, picture


def drawn() -> Image.Image:
    """A price list with lines of several sizes, one upside down, one tilted, one of a quarter turn."""
    picture = Image.new("RGB", (960, 600), PAPER)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((24, 20, 936, 580), outline=INK, width=3)
    draw.line((64, 200, 596, 200), fill=INK, width=2)
    for text, size, degrees, place, colour in LINES:
        font = ImageFont.load_default(size)
        left, top, right, bottom = map(round, font.getbbox(text))
        line = Image.new("L", (right - left + 4, bottom - top + 4))
        ImageDraw.Draw(line).text((2 - left, 2 - top), text, fill=255, font=font)
        turned = line.rotate(degrees, Image.Resampling.BICUBIC, expand=True)
        picture.paste(colour, place, turned)
    return picture


def written(image: Image.Image, file: Path) -> Path:
    """Beside and renamed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    image.save(part, "PNG")
    return part.replace(file)


def free_ports(*wanted: str) -> list[int]:
    """Ports of the loopback address nobody listens on; 0 is any."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in wanted]
        for each, port in zip(sockets, wanted, strict=True):
            if not port.isdecimal() or int(port) > 65535:
                raise DemoError(f"{PORT}: expected a port, 1 to 65535, got {port!r}")
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(port) != 0)
            try:
                each.bind((HOST, int(port)))
            except OSError as error:
                raise DemoError(f"{PORT}: expected a free port, {port} on {HOST} is not: {error.strerror}") from error
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def step(done: str) -> Iterator[None]:
    """Say what has been done and how long it took."""
    began = time.monotonic()
    yield
    say(f"{done} ({time.monotonic() - began:.1f} s)")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _failed(why: str) -> int:
    sys.stderr.write(f"tricade: {' '.join(why.split())}\n")
    return 1


def ignore_signals() -> None:
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
