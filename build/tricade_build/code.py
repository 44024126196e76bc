"""Which code made something: a part of every key, so that what another version made is made again."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def digest_of(*patterns: str) -> str:
    """Of sources of this package, by their paths in it without `.py`; `*` stands for any name."""
    here = Path(__file__).parent
    files = [file for pattern in patterns for file in sorted(here.glob(f"{pattern}.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
