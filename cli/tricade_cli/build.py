"""`tricade build`: a pipeline file to its models in a repository."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def register(app: typer.Typer) -> None:
    app.command("build")(build)


def build(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file.", exists=True, dir_okay=False)],
    repository: Annotated[Path, typer.Option(help="The model repository to write into.")] = Path("model_repository"),
    target: Annotated[str, typer.Option(help="What networks are built into.")] = "onnxruntime",
    as_json: Annotated[bool, typer.Option("--json", help="Say what was done as JSON.")] = False,
) -> None:
    """Fold a pipeline's networks and write all of its models into a repository."""
    from tricade_build.build import build as built_from  # imports onnx, which other commands can do without

    progress = Console(stderr=True)
    with progress.status("reading the pipeline") as status:  # drawn on a terminal only
        done = built_from(pipeline, repository=repository, target=target, report=status.update)
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
