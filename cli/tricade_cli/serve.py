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
    sample_every: Annotated[int, typer.Option(min=1, help="of how many pictures one is kept")] = Sampling.every,
    samples_max: Annotated[int, typer.Option(min=1, help="the most files in that folder")] = Sampling.most,
    verbose: Annotated[bool, typer.Option("--verbose", help="show the server's whole log")] = False,
) -> None:
    """Serve every pipeline of REPOSITORY; SIGTERM or Ctrl-C lets running calls finish and leaves nothing behind."""
    endpoints = Endpoints(host, grpc_port, http_port, metrics_port)
    sampling = Sampling(samples, sample_every, samples_max) if samples else None
    serve(repository, endpoints, say=lambda line: typer.echo(f"tricade: {line}"), verbose=verbose, sampling=sampling)
