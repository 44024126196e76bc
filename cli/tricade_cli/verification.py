"""How networks compare with fp32, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from .table import printable

if TYPE_CHECKING:  # onnx comes with it, which other commands can do without
    from tricade_build.verify import Verification


def table_of(verifications: Mapping[str, Verification]) -> Table:
    """A row for each network, by model; within it a line for each tensor."""
    from tricade_build.verify import rows

    table = Table(title="Compared with fp32", title_justify="left", title_style="bold")
    table.add_column("model", overflow="fold")
    table.add_column("")
    table.add_column("agreement")
    table.add_column("tensor", overflow="fold")
    table.add_column("max error", justify="right")
    table.add_column("mean error", justify="right")
    table.add_column("not finite", justify="right")
    for row in rows(verifications):
        verdict = Text(row.verdict, "green" if row.verdict == "passed" else "bold red")
        agreement = f"{row.agreement} (at least {row.allowed})\n{row.measure}\n{row.samples}"
        columns = zip(*((t.tensor, t.max_error, t.mean_error, t.not_finite) for t in row.tensors), strict=True)
        cells = [Text("\n".join(map(printable, column))) for column in columns] or [Text()] * 4
        table.add_row(Text(printable(row.model)), verdict, Text(agreement), *cells)
    return table
