"""Measurements: ways to do the same work, taken in turns within one run.

The fixture cascade `squares` is the tests' own.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))
