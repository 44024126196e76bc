"""`tricade check`: every mistake in a model repository, without a server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .table import printable

if TYPE_CHECKING:
    from tricade_build.checks import Finding

STYLES = {"error": "bold red", "warning": "yellow"}


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    repository: Annotated[Path, typer.Argument(help="The model repository.", exists=True, file_okay=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON list.")] = False,
) -> None:
    """Report everything in a model repository that would stop it or bend its answers."""
    from tricade_build.checks import findings_in, read  # imports onnx, which other commands can do without

    models = read(repository)
    findings = findings_in(models)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    elif findings:
        Console().print(_table(findings))
        typer.echo(_summary(findings, len(models)))
    else:
        typer.echo(f"{len(models)} models checked in {repository}: nothing is wrong")
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(1)


def _table(findings: Sequence[Finding]) -> Table:
    table = Table()
    for column in ("", "model", "what is wrong", "what to do"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        texts = (Text(printable(text)) for text in (finding.model, finding.problem, finding.remedy))
        table.add_row(Text(finding.severity, STYLES[finding.severity]), *texts)
    return table


def _summary(findings: Sequence[Finding], models: int) -> str:
    errors = sum(finding.severity == "error" for finding in findings)
    return f"{models} models checked: {errors} errors, {len(findings) - errors} warnings"
