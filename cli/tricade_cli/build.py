"""`tricade build`: a pipeline file to its models in a repository."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .progress import progress


def register(app: typer.Typer) -> None:
    app.command("build")(build)


def build(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file.", exists=True, dir_okay=False)],
    repository: Annotated[Path, typer.Option(help="The model repository to write into.")] = Path("model_repository"),
    target: Annotated[
        str, typer.Option(help="onnxruntime, tensorrt or tensorrt-rtx; if absent, what this machine can serve.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Say what was done as JSON.")] = False,
) -> None:
    """Fold a pipeline's networks and write all of its models into a repository."""
    from tricade_build.build import build as built_from  # imports onnx, which other commands can do without
    from tricade_build.targets import chosen

    if not target:
        target, why = chosen()
        typer.echo(f"target {target}: {why}", err=True)
    with progress("reading the pipeline") as report:
        done = built_from(pipeline, repository=repository, target=target, report=report)
    if as_json:
        typer.echo(json.dumps(asdict(done)))
        return
    for model in done.built:
        typer.echo(f"built   {model}")
    for model in done.kept:
        typer.echo(f"kept    {model}: nothing it is made from has changed")
    for model in done.removed:
        typer.echo(f"removed {model}: the pipeline no longer has it")
    typer.echo(f"{done.pipeline} is ready in {repository}; serve it with: tricade serve {repository}")
