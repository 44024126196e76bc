"""`manifest.json` beside a plan, read where plans are served: whether this plan fits this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
PLAN = "model.plan"
REBUILD = "run here: tricade build"


@dataclass(frozen=True)
class Here:
    """What a plan meets: `packages` maps a target to its version, e.g. tensorrt to 10.13.3.9."""

    packages: Mapping[str, str]
    capability: str  # of the GPU it would run on, e.g. 8.9; "" where there is none
    sha256: str  # of the plan as it lies there


def manifest_from(folder: Path) -> dict[str, Any]:
    """The manifest in a version folder by file name; empty where there is none that can be read."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def sha256_of(file: Path) -> str:
    """Read piece by piece: a plan may be large."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def misfit(manifest: Mapping[str, Any], here: Here, *, file: str = PLAN) -> str:
    """Why that plan must not be loaded here, in one sentence; "" where it fits."""
    try:
        record = manifest[file]
        sha256, engine = record["sha256"], record["engine"]
        target, version = engine["target"], engine["version"]
        capabilities, gpu = list(engine["capabilities"]), engine["gpu"]
    except (KeyError, TypeError):
        return f"{MANIFEST} does not say what {file} was built for; {REBUILD}"
    if sha256 != here.sha256:
        return (
            f"{file} is damaged or was replaced: its sha256 is {here.sha256[:12]}, {MANIFEST} says {sha256[:12]}; "
            f"{REBUILD}"
        )
    if target not in here.packages:
        found = ", ".join(f"{name} {number}" for name, number in here.packages.items()) or "nothing that runs plans"
        return f"{file} was built by {target} {version}, here is {found}; {REBUILD}"
    if not _same(version, here.packages[target]):
        return f"{file} was built by {target} {version}, here is {target} {here.packages[target]}; {REBUILD}"
    if here.capability not in capabilities:
        built = " or ".join(capabilities) + (f" ({gpu})" if gpu else "")
        found = f"this GPU has {here.capability}" if here.capability else "this machine has no GPU"
        return f"{file} was built for compute capability {built}, {found}; {REBUILD}"
    return ""


def _same(one: str, other: str) -> bool:
    """Whether two version numbers name one library: 8.6.1, 8.6.1.6 and 8.6.1.post1 do."""
    numbers = [[part for part in version.split(".") if part.isdigit()] for version in (one, other)]
    shared = min(map(len, numbers))
    return shared > 0 and numbers[0][:shared] == numbers[1][:shared]
