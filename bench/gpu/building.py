"""The repositories that are measured, one a precision; networks of all precisions are compiled at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cascade
from gpu.ahead import Coming, compile_ahead  # type: ignore[import-not-found]  # among the tests

from tricade_build.build import build
from tricade_build.errors import BuildError

from .. import weighty
from .options import Options
from .results import Results

# Of next to no weight, to rehearse with.
LIGHT: Mapping[str, weighty.Stages] = {"stages": ((16, 0), (16, 2)), "resnet": ((16, 1),)}
STAGES = ("preprocess", "crop", "label")
COUNTS = (5, 60)  # objects in the pictures to calibrate with, by turns: they have to differ
SAID_EVERY_S = 10.0


def build_all(options: Options, results: Results) -> bool:
    """What is built already stays; whether all of it is there."""
    path = _pipeline(options)
    if options.target != "onnxruntime":
        _compile(path, options, results)
    done = [_build(path, precision, options, results) for precision in options.precisions]
    return all(done)


def _pipeline(options: Options) -> Path:
    folder = options.out / "source"
    keys: dict[str, Any] = {"batching": {"max_delay_us": options.max_delay_us}}
    keys["instances"] = {name: count for name, count in options.instances.items() if name in STAGES}
    if options.level is not None:
        keys["builder"] = {"optimization_level": options.level}
    if options.pictures:
        (folder / "pictures").mkdir(parents=True, exist_ok=True)
        for seed in range(options.pictures):
            drawn = cascade.picture(cascade.objects(COUNTS[seed % len(COUNTS)], seed=seed), scale=2)
            (folder / "pictures" / f"{seed:03}.png").write_bytes(drawn)
        keys["calibration"] = {"images": "pictures"}
        keys["verification"] = {"images": "pictures", "max_drop": options.max_drop}
    return weighty.write(folder, **(LIGHT if options.light else {}), **keys)


def _compile(path: Path, options: Options, results: Results) -> None:
    """Each network of each precision at once."""
    builds = [Coming(path, options.out / precision, precision) for precision in options.precisions]
    found = compile_ahead(
        builds, target=options.target, reference=options.out / "reference", report=lambda about: _report(about, results)
    )
    for made in found:
        error = {"error": made.error} if made.error else {}
        results.add("compiled", precision=made.repository.name, network=made.network, seconds=made.seconds, **error)


def _build(path: Path, precision: str, options: Options, results: Results) -> bool:
    began_s = time.monotonic()
    report = _report(precision, results)
    try:
        done = build(
            path, repository=options.out / precision, target=options.target, precision=precision, report=report
        )
    except BuildError as error:
        results.add("built", precision=precision, error=str(error))
        return False
    results.add(
        "built",
        precision=precision,
        seconds=time.monotonic() - began_s,
        built=list(done.built),
        kept=list(done.kept),
        agreement={name: found.agreement for name, found in done.verified.items()},
        unverified=dict(done.unverified),
    )
    return True


def _report(about: str, results: Results) -> Callable[..., None]:
    last = [0.0]

    def report(what: str, share: float | None = None, /) -> None:
        now_s = time.monotonic()
        if share is None or now_s - last[0] > SAID_EVERY_S:
            last[0] = now_s
            results.say(f"{about}: {what}" + ("" if share is None else f" {share:.0%}"))

    return report
