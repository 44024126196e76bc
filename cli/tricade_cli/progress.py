"""What is being worked on, and how far it is: a line and a bar on a terminal, once it takes over two seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

PATIENCE_S = 2.0


@contextmanager
def progress(what: str) -> Iterator[Callable[..., None]]:
    """Gives a function of what is being done and, where it is known, the share that is done, 0 to 1.

    Each thread that calls it has a line of its own, which goes once the share is 1; that of `what` stays.
    """
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    shown = Progress(*columns, console=console, transient=True)
    first = threading.get_ident()
    lines: dict[int, TaskID] = {first: shown.add_task(what, total=None)}

    def report(what: str, share: float | None = None, /) -> None:
        mine = threading.get_ident()
        if mine not in lines:
            lines[mine] = shown.add_task(what, total=None)
        shown.update(lines[mine], description=what, total=None if share is None else 1.0, completed=share or 0.0)
        if share is not None and share >= 1 and mine != first:
            shown.remove_task(lines.pop(mine))

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
