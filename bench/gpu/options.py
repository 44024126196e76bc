"""What is asked for on the command line."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PRECISIONS = ("fp32", "fp16", "int8")
MEASUREMENTS = ("engines", "ensemble", "two-calls", "objects", "batching", "compare")
STAGES = ("preprocess", "crop", "label", "detector", "colour")


@dataclass(frozen=True)
class Options:
    """All of them; seconds are of each single measurement."""

    out: Path
    build_only: bool
    target: str
    precisions: tuple[str, ...]
    precision: str
    compare: tuple[str, ...]
    level: int | None
    light: bool
    pictures: int
    max_drop: float
    only: tuple[str, ...]
    cap_s: float
    seconds: float
    engine_seconds: float
    open_seconds: float
    rate: float
    callers: tuple[int, ...]
    two_callers: tuple[int, ...]
    objects: tuple[int, ...]
    busy: int
    few: int
    processes: int
    instances: dict[str, int]
    max_delay_us: int


def parsed(about: str | None, arguments: list[str] | None = None) -> Options:
    """From the command line; what cannot be ends the process with a message."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu", description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("out", type=Path, help="a folder for repositories and gpu.json; what is built stays there")
    _building(parser)
    _measuring(parser)
    found = vars(parser.parse_args(arguments))
    for name in ("precisions", "compare", "only"):
        found[name] = tuple(filter(None, found[name].split(",")))
    found["out"] = found["out"].resolve()
    found["compare"] = tuple(name for name in found["compare"] if name != found["precision"])
    if unknown := set(found["only"]) - set(MEASUREMENTS):
        parser.error(f"--only: expected some of {', '.join(MEASUREMENTS)}; got {', '.join(sorted(unknown))}")
    if unknown := {*found["precisions"], *found["compare"]} - set(PRECISIONS):
        parser.error(f"expected precisions out of {', '.join(PRECISIONS)}; got {', '.join(sorted(unknown))}")
    return Options(**found)


def _building(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("building")
    group.add_argument("--build-only", action="store_true", help="build --precisions, measure nothing")
    group.add_argument("--target", default="tensorrt")
    group.add_argument("--precisions", default="fp32,fp16")
    group.add_argument("--level", type=int, help="builder_optimization_level, 0 to 5")
    group.add_argument("--light", action="store_true", help="networks of next to no weight, to rehearse with")
    group.add_argument("--pictures", type=int, default=8, help="drawn to calibrate with and to verify on; 0: none")
    group.add_argument("--max-drop", type=float, default=1.0, help="verification only tells unless this is lower")


def _measuring(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("measuring")
    group.add_argument("--precision", default="fp16", choices=PRECISIONS)
    group.add_argument("--compare", default="fp32,int8", help="briefly, where they are built")
    group.add_argument("--only", default=",".join(MEASUREMENTS))
    group.add_argument("--cap-s", type=float, default=240.0, help="of the whole process; it has ended by then")
    group.add_argument("--seconds", type=float, default=3.0)
    group.add_argument("--engine-seconds", type=float, default=0.8)
    group.add_argument("--open-seconds", type=float, default=6.0)
    group.add_argument("--rate", type=float, default=200.0, help="calls a second of the open loop")
    group.add_argument("--callers", type=_counts, default="1,8,32,128")
    group.add_argument("--two-callers", type=_counts, default="1,8,32,128", help="of two calls a picture")
    group.add_argument("--objects", type=_counts, default="1,10,50,100,300", help="in a picture")
    group.add_argument("--busy", type=int, default=32, help="callers of comparisons and of the classifier alone")
    group.add_argument("--few", type=int, default=8, help="callers with pictures of many objects")
    group.add_argument("--processes", type=int, default=12, help="that callers are spread over, 8 or more in each")
    group.add_argument(
        "--instances",
        type=_instances,
        default="preprocess=6,crop=4,label=2",
        help="also detector, colour; others as built",
    )
    group.add_argument("--max-delay-us", type=int, default=0)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _instances(text: str) -> dict[str, Any]:
    """`preprocess=6,crop=4`."""
    found = {name: int(count) for name, _, count in (part.partition("=") for part in text.split(",") if part)}
    if unknown := set(found) - set(STAGES):
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(STAGES)}; got {', '.join(sorted(unknown))}")
    return found
