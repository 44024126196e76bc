"""`tricade detect`: what a served pipeline finds in pictures, as tables, JSON or drawn into copies."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from PIL import Image
from rich.console import Console
from rich.progress import Progress

from tricade_client import BadInput, Client, NotFound, Result, TricadeError, Unavailable

from .drawing import annotated, undrawn
from .table import table_of


def register(app: typer.Typer) -> None:
    app.command("detect")(detect)


@dataclass(frozen=True)
class Answer:
    """What became of one picture: a result, or why there is none; and its copy, where one was asked for."""

    image: Path
    result: Result | None = None
    saved: Path | None = None
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"image": str(self.image)}
        if self.result is not None:
            found |= self.result.to_dict()
        if self.saved is not None:
            found["saved"] = str(self.saved)
        return found | ({"error": self.error} if self.error else {})


def detect(
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE...", help="Pictures: JPEG, PNG, WebP, BMP or TIFF.")],
    url: Annotated[str, typer.Option(help="The server's gRPC endpoint.")] = "localhost:8001",
    pipeline: Annotated[str, typer.Option(help="Which of its pipelines.")] = "text",
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="The least score, in place of the pipeline's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    save: Annotated[
        Path | None, typer.Option(file_okay=False, help="A folder for copies with what was found drawn in.")
    ] = None,
    timeout_s: Annotated[float, typer.Option(min=0.001, help="Seconds to wait for each picture.")] = 30.0,
) -> None:
    """Find what a pipeline finds in pictures."""
    try:
        client = Client(url, pipeline, timeout_s=timeout_s)
    except BadInput as error:
        raise typer.BadParameter(str(error)) from error
    answers = []
    with client, _progress(as_json) as bar:
        for answer in bar.track(_answers(client, images, threshold=threshold, save=save), len(images)):
            answers.append(answer)
            if answer.error:
                typer.echo(f"tricade: {answer.error}", err=True)
            if not as_json:
                _show(answer)
    if as_json:
        typer.echo(json.dumps({"pipeline": pipeline, "images": [answer.to_dict() for answer in answers]}, indent=2))
    if any(answer.error for answer in answers):
        raise typer.Exit(1)


def _answers(client: Client, images: list[Path], *, threshold: float | None, save: Path | None) -> Iterator[Answer]:
    """In the order of the pictures; raises only what would befall each of them."""
    names = _copies(images, save) if save else []
    stream = client.stream(images, threshold=threshold, return_errors=True)
    for index, (image, found) in enumerate(zip(images, stream, strict=True)):
        if isinstance(found, (NotFound, Unavailable)):
            raise found
        if isinstance(found, TricadeError):
            yield Answer(image, error=str(found) if str(image) in str(found) else f"{image}: {found}")
        elif save is None:
            yield Answer(image, found)
        else:
            yield _saved(image, found, names[index])


def _progress(as_json: bool) -> Progress:
    """A bar where nothing else shows how far it is: the tables themselves do, on a terminal."""
    hidden = not sys.stderr.isatty() or (sys.stdout.isatty() and not as_json)
    return Progress(console=Console(stderr=True), transient=True, redirect_stdout=False, disable=hidden)


def _show(answer: Answer) -> None:
    """A table, or that nothing was found; wide where no terminal limits it."""
    if answer.result is None:
        return
    console = Console(width=None if sys.stdout.isatty() else 200)
    if len(answer.result):
        console.print(table_of(answer.result, str(answer.image)))
    else:
        typer.echo(f"{answer.image}: nothing found")
    if answer.result.truncated:
        typer.echo(f"{answer.image}: {answer.result.truncated} more were dropped by the pipeline's max_detections")
    if answer.saved is not None:
        typer.echo(f"{answer.image}: drawn into {answer.saved}")
        if hidden := undrawn(answer.result):
            typer.echo(
                f"{answer.image}: no installed font has the characters of {hidden} captions, the table's numbers stand "
                "for them; install one (Debian: fonts-noto-cjk)"
            )


def _saved(image: Path, result: Result, copy: Path) -> Answer:
    """Written beside and renamed."""
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        part = copy.with_name(f".{copy.name}.part")
        with Image.open(image) as picture:
            annotated(picture, result).save(part, "PNG" if copy.suffix == ".png" else "JPEG")
        part.replace(copy)
    except (OSError, ValueError) as error:
        return Answer(image, result, error=f"{image}: its copy {copy} cannot be written: {error}")
    return Answer(image, result, copy)


def _copies(images: list[Path], folder: Path) -> list[Path]:
    """A name for each picture's copy: no original is overwritten, and no other copy."""
    copies: list[Path] = []
    for image in images:
        ending = ".png" if image.suffix.lower() == ".png" else ".jpg"
        names = (
            f"{image.stem}.found{suffix}{ending}" for suffix in ["", *(f"-{n}" for n in range(2, len(images) + 1))]
        )
        copies.append(next(folder / name for name in names if folder / name not in copies))
    return copies
