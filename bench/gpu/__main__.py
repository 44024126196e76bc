"""Measure tricade on a GPU host, in one process of bounded time, a line of JSON a figure: `python -m bench.gpu OUT`.

Needs TensorRT, a CUDA device and tricade's own requirements; tricade need not be installed. With `--build-only` the
repositories are made, below OUT; without it they are measured, and OUT/gpu.json has all the figures. $TRITON may name a
Triton server's folder, which is then linked to where NVIDIA's image has it.
"""

from __future__ import annotations

import os
import sys

from gpu.uninstalled import importable  # type: ignore[import-not-found]  # among the tests

from .options import Options, parsed
from .results import Results, TimeUp


def main(options: Options) -> int:
    """Exit code: 0 done, 1 a repository could not be built, 2 the time was up."""
    name = "build.json" if options.build_only else "gpu.json"
    results = Results(options.out / name, cap_s=options.cap_s)
    results.end_in_time()
    try:
        if not options.build_only:
            from .measuring import measure

            measure(options, results)
            return 0
        from .building import build_all

        return 0 if build_all(options, results) else 1
    except TimeUp:
        results.add("ended", why="the time was up")
        return 2


if __name__ == "__main__":
    asked = parsed(__doc__)
    importable()
    os.environ.setdefault("TRICADE_CACHE", str(asked.out / "cache"))
    code = main(asked)
    sys.stdout.flush()
    os._exit(code) if code == 2 else sys.exit(code)
