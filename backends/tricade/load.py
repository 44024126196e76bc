"""Make the package `tricade` importable inside a Triton stub: run by every `model.py` beside it.

The backend directory itself must not be on the path: `import tensorrt` would find our folder there.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

if "tricade" not in sys.modules:
    spec = PathFinder.find_spec("tricade", [str(Path(__file__).resolve().parents[1])])
    if spec is None or spec.loader is None:
        raise ImportError(f"{Path(__file__).parent} is not a package; copy all of tricade's backends")
    sys.modules["tricade"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
