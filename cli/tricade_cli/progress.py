"""What is being worked on, and how far it is: a line and a bar on a terminal, once it takes over two seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

PATIENCE_S = 2.0


@contextmanager
def progress(what: str) -> Iterator[Callable[..., None]]:
    """Gives a function of what is being done and, where it is known, the share that is done, 0 to 1."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    shown = Progress(*columns, console=console, transient=True)
    task = shown.add_task(what, total=None)

    def report(what: str, share: float | None = None, /) -> None:
        shown.update(task, description=what, total=None if share is None else 1.0, completed=share or 0.0)

    patience = threading.Timer(PATIENCE_S, shown.start)
    patience.daemon = True
    if console.is_terminal:
        patience.start()
    try:
        yield report
    finally:
        patience.cancel()
        if patience.is_alive():
            patience.join()  # it may be starting just now
        if shown.live.is_started:  # stopping one that is not writes an empty line
            shown.stop()
