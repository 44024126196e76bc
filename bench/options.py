"""What `python -m bench` takes."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from tricade.onnx_network import cores

from . import ROOT
from .contestants import EVERY, HERE, QUICK, TEXT_ONLY
from .measure import Plan
from .peers.served import BIN
from .workloads import Workload, workloads

# What a run takes without a word: two minutes for a few contestants, half an hour for all.
WORKLOADS = ("text-small", "squares-10-small", "squares-10-large")
CALLERS = {"text": (1, 2), "squares": (1, 8)}
CALLERS_OF_PEERS = {"text": (1, 8), "squares": (1, 8, 32)}


def parsed(about: str | None, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, or other arguments, checked."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=about)
    _add_what(parser)
    _add_how(parser)
    options = parser.parse_args(arguments)
    options.contestants = options.contestants or (EVERY if options.peers else QUICK)
    options.open = options.open or ([0.5] if options.peers else [])
    options.seconds = options.seconds or (1.0 if options.peers else 0.5)
    if not (BIN / "python").is_file() and not set(options.contestants) <= set(HERE):
        parser.error(f"expected {BIN.parent} for {', '.join(options.contestants)}; run: make bench-peers")
    if not chosen(options):
        parser.error(f"--workloads: expected one of {', '.join(each.name for each in workloads())}")
    return options


def chosen(options: argparse.Namespace) -> list[Workload]:
    """The workloads that were asked for."""
    return [each for each in workloads(options.workloads) if each.pipeline in options.pipelines]


def plan_of(options: argparse.Namespace, pipeline: str) -> Plan:
    """For one pipeline: libraries that read text have no part in others."""
    names = [name for name in options.contestants if pipeline == "text" or name not in TEXT_ONLY]
    callers = options.callers or (CALLERS_OF_PEERS if options.peers else CALLERS)[pipeline]
    return Plan(names, callers, options.open, options.rounds, options.seconds)


def _add_what(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = ", ".join(each.name for each in workloads())
    add("--workloads", nargs="+", metavar="PATTERN", default=WORKLOADS, help=f"of {names}")
    add("--pipelines", nargs="+", choices=["text", "squares"], default=["text", "squares"], help="only theirs")
    add("--contestants", nargs="+", choices=EVERY, metavar="NAME", help=f"of {', '.join(EVERY)}")
    add("--peers", action="store_true", help="all contestants; most need what make bench-peers installs")
    add("--output", type=Path, default=ROOT / "out" / "bench.json", help="every round; plots go beside it")
    add("--no-plots", action="store_true")
    add("--no-pieces", action="store_true", help="leave out the stages' own arithmetic")


def _add_how(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--callers",
        nargs="+",
        type=_count,
        metavar="N",
        help="callers that wait for answers: for text 1 2 (peers 1 8), else 1 8 (32)",
    )
    add("--open", nargs="+", type=_amount, metavar="SHARE", help="arrivals at a share of tricade's rate; for peers 0.5")
    add("--rounds", type=_count, default=5, help="turns of each contestant: 5")
    add("--seconds", type=_amount, help="of a turn, in which each caller calls twice at least: 0.5, for peers 1")
    add("--workers", type=_count, default=cores(), metavar="N", help="processes of each peer: the cores")
    add("--threads", type=_count, default=cores(), metavar="N", help="of each of its networks: the cores")


def _count(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")


def _amount(text: str) -> float:
    try:
        if 0 < float(text) < math.inf:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
