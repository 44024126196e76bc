"""`tricade models`: the ONNX files of an example pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("models")(models)


def models(
    name: Annotated[str, typer.Argument(help="The example: text.")],
    to: Annotated[Path, typer.Option(help="The folder to put them into, below the example's name.")] = Path("models"),
) -> None:
    """Fetch the ONNX files of an example pipeline."""
    from tricade_build.models import SETS, fetch  # imports more than other commands need

    fetched = fetch(name, into=to)
    for file in fetched.files:
        typer.echo(f"{'wrote' if file in fetched.written else 'kept '} {fetched.folder / file}")
    found = SETS[name]
    typer.echo(f"{found.origin}; licence {found.licence}; from {found.package} {found.version}")
