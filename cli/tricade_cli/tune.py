"""`tricade tune`: the setting of a pipeline that meets a latency at a rate with the fewest processes."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .progress import progress

if TYPE_CHECKING:  # onnx comes with it, which other commands can do without
    from tricade_tune.setting import Setting
    from tricade_tune.tune import Asked, Outcome, Report

    # What a test gives as the context's object stands in the place of the search on real servers.
    Search = Callable[[Asked, Report], Outcome]

LEAST_CALLS = 100  # of fewer the p99 is just the slowest
LATE = 0.05  # the share of late calls above which the caller's own machine is in doubt


def register(app: typer.Typer) -> None:
    app.command("tune")(tune)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise typer.BadParameter(f"expected a finite number; got {value}")
    return value


def tune(
    context: typer.Context,
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file.", exists=True, dir_okay=False)],
    images: Annotated[
        Path, typer.Option(metavar="DIR", help="Pictures such as will be served.", exists=True, file_okay=False)
    ],
    p99: Annotated[
        float,
        typer.Option(metavar="MS", min=1e-6, callback=_finite, help="Milliseconds that 99 % of the calls may take."),
    ],
    rate: Annotated[
        float,
        typer.Option(metavar="CALLS_PER_S", min=1e-3, callback=_finite, help="Calls a second, which arrive at random."),
    ],
    objects: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="Shares of pictures by their number of objects, e.g. 0:20,1-5:50,6-:30; "
            "if absent, the pictures as they are.",
        ),
    ] = "",
    repository: Annotated[Path, typer.Option(help="Where the pipeline has been built.")] = Path("model_repository"),
    trials: Annotated[int, typer.Option(min=1, help="Settings that are tried at most.")] = 16,
    seconds: Annotated[float, typer.Option(min=0.1, callback=_finite, help="Seconds of load in each trial.")] = 5.0,
    output: Annotated[Path, typer.Option(file_okay=False, help="A folder for the plot.")] = Path("out"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing: neither the setting nor a plot.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was tried and chosen as JSON.")] = False,
) -> None:
    """Find the setting that keeps a p99 at a rate with the fewest processes, and write it into the pipeline file.

    Instances, delays and batches are tried on a real server; let the machine do nothing else meanwhile.
    Where no setting meets the target nothing is written, and the exit code is 1.
    """
    from tricade_server.signals import interruptible
    from tricade_tune.errors import BadObjects
    from tricade_tune.objects import shares_from
    from tricade_tune.pipeline_file import text_from, write
    from tricade_tune.tune import Asked
    from tricade_tune.tune import tune as search

    try:
        shares = shares_from(objects) if objects else ()
    except BadObjects as error:
        raise typer.BadParameter(str(error).removeprefix("--objects: "), param_hint="--objects") from error
    before = "" if dry_run else text_from(pipeline)
    tuned: Search = context.obj or search
    asked = Asked(pipeline, images, p99, rate, shares, repository, trials, seconds)
    try:
        with interruptible(), progress("reading the pipeline") as report:
            outcome = tuned(asked, report)
    except KeyboardInterrupt:
        typer.echo(f"tricade: stopped; nothing was written, {pipeline} is as it was", err=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(_json(outcome, rate))
    else:
        Console(width=None if sys.stdout.isatty() else 160).print(_table(outcome, rate))
        _doubts(outcome, rate)
    if outcome.missed:
        typer.echo(f"tricade: {outcome.missed}", err=True)
        raise typer.Exit(1)
    assert outcome.choice is not None
    if not dry_run:
        write(pipeline, before, outcome.start, outcome.choice)
    if not as_json:
        _say(outcome, outcome.choice, asked, dry_run=dry_run)
    if not dry_run:
        _plot(outcome, outcome.choice, rate, output, quiet=as_json)


def _plot(outcome: Outcome, choice: Setting, rate: float, output: Path, *, quiet: bool) -> None:
    from tricade_tune.plot import write_plot

    plot = output / f"tune-{outcome.pipeline}.png"
    try:
        write_plot(plot, outcome.tried, outcome.goal, choice=choice, title=f"{outcome.pipeline}: {rate:g} calls/s")
    except OSError as error:
        typer.echo(f"tricade: the plot cannot be written: {error}; name another folder: --output", err=True)
    else:
        if not quiet:
            typer.echo(f"plotted into {plot}")


def _json(outcome: Outcome, rate: float) -> str:
    """One document; a p99 that is infinite is null."""
    from tricade_tune.search import frontier

    def said(setting: Setting) -> dict[str, Any]:
        measured = asdict(outcome.tried[setting])
        if math.isinf(measured["p99_ms"]):
            measured["p99_ms"] = None
        return {"processes": setting.processes, **asdict(setting), "measured": measured}

    document = {
        "pipeline": outcome.pipeline,
        "rate": rate,
        "p99_ms": outcome.goal.p99_ms,
        "tried": [said(setting) for setting in outcome.tried],
        "frontier": [said(setting) for setting in frontier(outcome.tried)],
        "chosen": said(outcome.choice) if outcome.choice else None,
        "missed": str(outcome.missed) if outcome.missed else None,
    }
    return json.dumps(document, indent=2)


def _table(outcome: Outcome, rate: float) -> Table:
    """By processes; the frontier stands out, the choice is marked."""
    from tricade_tune.search import frontier
    from tricade_tune.verdict import figure

    edge = frontier(outcome.tried)
    title = f"{outcome.pipeline} at {rate:g} calls/s: p99 of at most {outcome.goal.p99_ms:g} ms"
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    for column in ("", "processes", "p99 ms", "missed", "longest queue"):
        table.add_column(column, justify="right" if column in ("processes", "p99 ms", "missed") else "left")
    table.add_column("setting", overflow="fold")
    for setting in sorted(outcome.tried, key=lambda each: (each.processes, outcome.tried[each].p99_ms)):
        measured = outcome.tried[setting]
        p99 = "-" if math.isinf(measured.p99_ms) else figure(measured.p99_ms)
        queue = max(measured.steps.items(), key=lambda item: item[1].queue_ms, default=None)
        fell_back = f"{', '.join(measured.fell_back)} on ONNX Runtime" if measured.fell_back else ""
        remark = measured.failed or fell_back
        cells = [
            "chosen" if setting == outcome.choice else "frontier" if setting in edge else "",
            str(setting.processes),
            p99,
            "-" if measured.failed else f"{measured.missed:.1%}",
            f"{queue[0]}, {figure(queue[1].queue_ms)} ms" if queue else "",
            setting.since(outcome.start) + (f" ({remark})" if remark else ""),
        ]
        style = "bold green" if setting == outcome.choice else "" if setting in edge else "dim"
        table.add_row(*map(Text, cells), style=style)
    return table


def _doubts(outcome: Outcome, rate: float) -> None:
    """What makes the figures less sure, or those of something else."""
    from tricade_tune.verdict import fallbacks

    for line in fallbacks(list(outcome.tried.values())):
        typer.echo(line)
    calls = min((each.calls for each in outcome.tried.values() if each.calls), default=LEAST_CALLS)
    if calls < LEAST_CALLS:
        seconds = math.ceil(LEAST_CALLS / rate)
        typer.echo(f"a trial had {calls} calls: of so few the p99 is the slowest; --seconds {seconds} gives enough")
    late = max(each.late for each in outcome.tried.values() if outcome.goal.met_by(each) or outcome.missed)
    if late > LATE:
        typer.echo(
            f"up to {late:.0%} of a trial's calls began late, and their waiting counts: the machine is short of time"
        )


def _say(outcome: Outcome, choice: Setting, asked: Asked, *, dry_run: bool) -> None:
    pipeline = asked.pipeline
    typer.echo(f"chosen: {choice.processes} processes: {choice}")
    if choice == outcome.start:
        typer.echo(f"{pipeline} has it already")
    elif dry_run:
        typer.echo(f"{pipeline} is as it was (--dry-run)")
    else:
        build = f"tricade build {pipeline} --repository {asked.repository}"
        typer.echo(f"written into {pipeline}: {choice.since(outcome.start)}; build it: {build}")
