"""As much of `manifest.json` as serving asks for, beside plans that `tricade build` has not built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from tricade.engine import SHARING
from tricade.manifest import MANIFEST


def record(file: Path, plan: bytes, *, flags: Sequence[str] = (SHARING,)) -> None:
    """Write that the plan which is, or will be, `file` was built with these flags."""
    found = {file.name: {"sha256": hashlib.sha256(plan).hexdigest(), "engine": {"flags": list(flags)}}}
    (file.parent / MANIFEST).write_text(json.dumps(found))
