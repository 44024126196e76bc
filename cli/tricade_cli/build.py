"""`tricade build`: a pipeline file to its models in a repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .progress import progress

if TYPE_CHECKING:  # it imports onnx, which other commands can do without
    from tricade_build.build import Built


def register(app: typer.Typer) -> None:
    app.command("build")(build)


def build(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file.", exists=True, dir_okay=False)],
    repository: Annotated[Path, typer.Option(help="The model repository to write into.")] = Path("model_repository"),
    target: Annotated[
        str, typer.Option(help="onnxruntime, tensorrt or tensorrt-rtx; if absent, what this machine can serve.")
    ] = "",
    precision: Annotated[
        str, typer.Option(help="fp32, fp16 or int8, in the place of the pipeline file's own `precision`.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Say what was done as JSON.")] = False,
) -> None:
    """Make a pipeline's networks, hold them to fp32, and write all of its models into a repository."""
    from tricade_build.build import build as built_from
    from tricade_build.targets import chosen

    if not target:
        target, why = chosen()
        typer.echo(f"target {target}: {why}", err=True)
    with progress("reading the pipeline") as report:
        done = built_from(pipeline, repository=repository, target=target, precision=precision or None, report=report)
    if as_json:
        typer.echo(_json(done))
    else:
        _say(done, repository)


def _json(done: Built) -> str:
    from pydantic import TypeAdapter

    from tricade_build.build import Built

    return TypeAdapter(Built).dump_json(done).decode()


def _say(done: Built, repository: Path) -> None:
    from rich.console import Console

    from .verification import table_of

    if done.verified:
        Console().print(table_of(done.verified))
    for model in done.built:
        typer.echo(f"built   {model}")
    for model in done.kept:
        typer.echo(f"kept    {model}: nothing it is made from has changed")
    for model in done.removed:
        typer.echo(f"removed {model}: the pipeline no longer has it")
    for file, why in done.unverified.items():
        typer.echo(f"not compared with fp32: {file}: {why}")
    typer.echo(f"{done.pipeline} is ready in {repository}; serve it with: tricade serve {repository}")
