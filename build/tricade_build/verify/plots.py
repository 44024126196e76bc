"""What there is to see of a comparison: numbers for plots, and the plots as SVG that a page can hold."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .deviation import EDGES, PER_DECADE, Histogram

if TYPE_CHECKING:  # matplotlib takes a second to import
    from matplotlib.axes import Axes

MAX_POINTS = 2000  # of a scatter plot; more make the page slow

# Drawn in colours that nothing else has, and given the page's instead: SVG that knows light and dark.
INK, LINE, MARK = "#010203", "#010204", "#010205"
COLOURS = {INK: "currentColor", LINE: "var(--line)", MARK: "var(--mark)"}
STYLE: dict[Any, Any] = {  # matplotlib 3.11 lists all of its keys in the type
    "axes.edgecolor": LINE,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "grid.alpha": 0.4,
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tricade",  # equal plots are equal bytes
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True)
class Plots:
    """What a page draws."""

    histograms: Mapping[str, Histogram]  # of absolute errors, by tensor
    scores: NDArray[np.float32]  # (n, 2): fp32's and the candidate's, of what both found
    agreements: NDArray[np.float32]  # of each picture, 0 to 1, ascending


@dataclass(frozen=True)
class Plot:
    """`says` is what one who does not see it should know."""

    title: str
    says: str
    svg: str


def drawn(plots: Plots) -> list[Plot]:
    """Those that there is something to draw for."""
    scenes = (*_error_scenes(plots.histograms), *_score_scenes(plots.scores), *_agreement_scenes(plots.agreements))
    return [
        Plot(scene.title, scene.says, _svg(scene.draw, prefix=f"plot{number}-"))
        for number, scene in enumerate(scenes, start=1)
    ]


@dataclass(frozen=True)
class _Scene:
    title: str
    says: str
    draw: Callable[[Axes], None]


def _error_scenes(histograms: Mapping[str, Histogram]) -> Iterator[_Scene]:
    for tensor, histogram in histograms.items():
        bars, total = histogram[1:], int(histogram.sum())
        says = f"{histogram[0] / total:.1%} of {total:,} values are equal"
        if bars.any():
            says += f"; of the others half are at most {_median(bars):.1g} apart"
        yield _Scene(f"Absolute errors of {tensor}", says, partial(_draw_errors, bars=bars))


def _score_scenes(scores: NDArray[np.float32]) -> Iterator[_Scene]:
    finite = scores[np.isfinite(scores).all(axis=1)]
    if len(finite):
        apart = np.abs(finite[:, 1] - finite[:, 0])
        says = f"{len(finite)} pairs of scores, at most {apart.max():.3f} apart, {apart.mean():.4f} on average"
        yield _Scene("Scores, in fp32 and as served", says, partial(_draw_scores, scores=_fewer(finite)))


def _agreement_scenes(shares: NDArray[np.float32]) -> Iterator[_Scene]:
    if len(shares):
        says = (
            f"{(shares == 1).sum()} of {len(shares)} pictures agree wholly; the one that agrees least: {shares[0]:.3f}"
        )
        yield _Scene("Agreement of each picture, sorted", says, partial(_draw_agreements, shares=shares))


def _draw_errors(axes: Axes, *, bars: Histogram) -> None:
    decades = np.flatnonzero(bars) // PER_DECADE if bars.any() else np.arange(2)
    first, last = PER_DECADE * int(decades[0]), PER_DECADE * (int(decades[-1]) + 1)
    axes.stairs(bars, EDGES, fill=True, color=MARK, baseline=0.5)
    axes.set(xscale="log", yscale="log", xlabel="absolute error", ylabel="values")
    axes.set(xlim=(EDGES[first], EDGES[last]), ylim=(0.5, 2 * max(1, bars.max())))


def _draw_scores(axes: Axes, *, scores: NDArray[np.float32]) -> None:
    axes.axline((0, 0), slope=1, color=LINE, linewidth=1)
    axes.plot(scores[:, 0], scores[:, 1], ".", color=MARK, markersize=4, alpha=0.6, markeredgewidth=0)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="score in fp32", ylabel="score as served")


def _draw_agreements(axes: Axes, *, shares: NDArray[np.float32]) -> None:
    axes.fill_between(np.arange(len(shares) + 1), np.append(shares, shares[-1]), step="post", color=MARK, linewidth=0)
    axes.set(xlim=(0, len(shares)), ylim=(0, 1.02), xlabel="pictures", ylabel="agreement")


def _svg(draw: Callable[[Axes], None], *, prefix: str) -> str:
    """An <svg> element whose ids begin with the prefix, for a page that has several."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        draw(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata=NO_METADATA)
    svg = re.sub(r"^.*?(?=<svg )|<style.*?</style>", "", text.getvalue(), flags=re.DOTALL)
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{prefix}", svg)
    for drawn_in, colour in COLOURS.items():
        svg = svg.replace(drawn_in, colour)
    return svg


def _fewer(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """The pairs that are furthest apart, and an even choice of the others."""
    if len(scores) <= MAX_POINTS:
        return scores
    apart = scores[np.argsort(-np.abs(scores[:, 1] - scores[:, 0]), kind="stable")]
    half = MAX_POINTS // 2
    return apart[np.append(np.arange(half), np.linspace(half, len(apart) - 1, half).astype(np.int64))]


def _median(bars: Histogram) -> float:
    """The upper edge of the bin that holds it."""
    cumulated = np.cumsum(bars)
    return float(EDGES[1 + int(np.searchsorted(cumulated, cumulated[-1] / 2))])
