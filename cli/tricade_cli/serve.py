"""`tricade serve`: the pipelines of a repository behind gRPC and HTTP, until told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tricade.sampling import Sampling
from tricade_server.process import Endpoints
from tricade_server.serve import serve


def register(app: typer.Typer) -> None:
    app.command("serve")(_serve)


def _serve(
    repository: Annotated[Path, typer.Argument(help="a folder that `tricade build` has rendered")],
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    grpc_port: Annotated[int, typer.Option(min=1, max=65535)] = 8001,
    http_port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    metrics_port: Annotated[int, typer.Option(min=1, max=65535)] = 8002,
    samples: Annotated[
        Path | None, typer.Option(metavar="DIR", help="keep a part of the pictures that users send, in this folder")
    ] = None,
    sample_every: Annotated[
        int | None, typer.Option(min=1, help=f"of how many pictures one is kept; {Sampling.every} if absent")
    ] = None,
    samples_max: Annotated[
        int | None, typer.Option(min=1, help=f"the most files in that folder; {Sampling.most} if absent")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="show the server's whole log")] = False,
) -> None:
    """Serve every pipeline of REPOSITORY; SIGTERM or Ctrl-C lets running calls finish and leaves nothing behind."""
    endpoints = Endpoints(host, grpc_port, http_port, metrics_port)
    sampling = _sampling(samples, every=sample_every, most=samples_max)
    serve(repository, endpoints, say=lambda line: typer.echo(f"tricade: {line}"), verbose=verbose, sampling=sampling)


def _sampling(folder: Path | None, *, every: int | None, most: int | None) -> Sampling | None:
    if folder is not None:
        return Sampling(folder, every or Sampling.every, most or Sampling.most)
    for option, value in (("--sample-every", every), ("--samples-max", most)):
        if value is not None:
            raise typer.BadParameter(
                "expected --samples DIR beside it; without a folder no picture is kept", param_hint=option
            )
    return None
