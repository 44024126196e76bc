"""The report beside an engine: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from .plots import Plot, Plots, drawn
from .table import Row, TensorRow, row_of
from .verification import Verification, Worst

CSS = """
:root { color-scheme: light dark; --line: #8c929b; --mark: #2563c9; --good: #1a7f37; --bad: #c4232b; --soft: #f2f4f7;
  --ground: #fff; --ink: #1b1f24; }
@media (prefers-color-scheme: dark) { :root { --line: #7d8590; --mark: #6ea8fe; --good: #4cc26a; --bad: #ff7b72;
  --soft: #1c222b; --ground: #11151b; --ink: #e6e9ee; } }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; overflow-wrap: anywhere; }
h2 { margin: 2.2rem 0 0.6rem; font-size: 1.15rem; }
.passed, .failed { font-weight: 600; }
.passed { color: var(--good); }
.failed { color: var(--bad); }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.9rem 0.3rem 0; text-align: left; vertical-align: top; overflow-wrap: break-word; }
thead th { border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody tr + tr > * { border-top: 1px solid var(--soft); }
tbody th { font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
figure { margin: 0; padding: 1rem; background: var(--soft); border-radius: 0.5rem; }
figure svg { display: block; width: 100%; height: auto; }
figure text { font-family: inherit !important; }
figcaption { margin-bottom: 0.5rem; overflow-wrap: anywhere; }
figcaption span { display: block; font-size: 0.875rem; }
"""

# Nothing is fetched and nothing runs, whatever a name in it says.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
DETAILS = {
    "f1": "F1 of detections at the served threshold",
    "expected": "detections in fp32",
    "missed": "of those missed",
    "added": "detections that fp32 has not",
    "equal": "share of crops with equal answers",
    "lowest": "lowest of a crop",
}
SHARES = {"f1", "equal", "lowest"}


def page(model: str, verification: Verification, plots: Plots, facts: Mapping[str, str]) -> bytes:
    """UTF-8; `facts` say what was compared: precision, target, GPU, files and the like."""
    row = row_of(model, verification)
    title = f"{model} compared with fp32"
    parts = (
        f"<h1>{escape(title)}</h1>",
        f'<p><span class="{row.verdict}">{row.verdict.capitalize()}.</span> {escape(_sentence(verification))}</p>',
        _section("What was compared", _table("Facts", (), [*facts.items(), ("samples", row.samples)])),
        _section("Figures", _table("Figures", (), _figures(row, verification))),
        _section("Errors of tensors", _errors(row.tensors)),
        _section("Plots", f'<div class="plots">{"".join(map(_figure, drawn(plots)))}</div>'),
        _section("Samples that agree least", _worst(verification.worst)),
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}: {row.verdict}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    ).encode()


def _sentence(found: Verification) -> str:
    if not found.samples:
        return f"There were no {found.unit} to compare."
    finite = f" {found.not_finite} values are not finite, though they are in fp32." if found.not_finite else ""
    return (
        f"Agreement {found.agreement:.4f} ({found.measure}) over {found.samples} {found.unit}; "
        f"at least {1 - found.max_drop:.4g} is asked for.{finite}"
    )


def _figures(row: Row, found: Verification) -> Iterable[tuple[str, str]]:
    yield found.measure, row.agreement
    yield "drop", f"{found.drop:.4f} (allowed: {found.max_drop:.4g})"
    for name, value in found.details.items():
        yield DETAILS[name], f"{value:.4f}" if name in SHARES else f"{value:,.0f}"
    yield "values not finite", f"{found.not_finite:,}"


def _errors(tensors: Sequence[TensorRow]) -> str:
    head = ("tensor", "values", "max error", "mean error", "not finite")
    rows = [(row.tensor, row.values, row.max_error, row.mean_error, row.not_finite) for row in tensors]
    return _table("Errors of tensors", head, rows, numbers=True) if rows else "<p>No tensor was compared.</p>"


def _worst(worst: Sequence[Worst]) -> str:
    rows = [(one.picture, one.what, one.reference, one.candidate) for one in worst]
    return (
        _table("Samples that agree least", ("picture", "what", "fp32", "as served"), rows)
        if rows
        else "<p>All agree.</p>"
    )


def _figure(plot: Plot) -> str:
    title, says = escape(plot.title), escape(plot.says)
    svg = plot.svg.replace("<svg ", f'<svg role="img" aria-label="{title}: {says}" ', 1)
    return f"<figure>\n<figcaption><strong>{title}</strong><span>{says}</span></figcaption>\n{svg}</figure>\n"


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>"


def _table(label: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> str:
    """A row's first cell names it; with `numbers`, the others are numbers. Keys scroll one that is too wide."""
    right = ' class="number"' if numbers else ""
    names = "".join(f'<th scope="col"{right if place else ""}>{escape(name)}</th>' for place, name in enumerate(head))
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td{right}>{escape(cell)}</td>" for cell in rest)}</tr>\n'
        for first, *rest in rows
    )
    top = f"<thead><tr>{names}</tr></thead>" if head else ""
    return (
        f'<div class="table" role="region" aria-label="{escape(label)}" tabindex="0">'
        f"<table>{top}<tbody>\n{body}</tbody></table></div>"
    )
