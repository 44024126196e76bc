"""`tricade serve`: the pipelines of a repository behind gRPC and HTTP, until told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    verbose: Annotated[bool, typer.Option("--verbose", help="show the server's whole log")] = False,
) -> None:
    """Serve every pipeline of REPOSITORY; SIGTERM or Ctrl-C lets running calls finish and leaves nothing behind."""
    endpoints = Endpoints(host, grpc_port, http_port, metrics_port)
    serve(repository, endpoints, say=lambda line: typer.echo(f"tricade: {line}"), verbose=verbose)
