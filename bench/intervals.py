"""How sure a measured number is: intervals from order statistics, which suppose nothing about its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .load import Round

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A number between two bounds; `coverage` is the chance with which they hold the true one, of `count` samples."""

    low: float
    value: float
    high: float
    coverage: float
    count: int


def quantile_of(samples: Sequence[float], share: float, *, confidence: float = CONFIDENCE) -> Interval:
    """A quantile of independent samples, and two of them that hold the true one, with equal chances of missing it on
    either side; where samples are too few for that confidence, the least and the greatest.

    How many of n samples lie below the true quantile is binomial (David and Nagaraja, Order Statistics, 7.1).
    """
    ordered, count = sorted(samples), len(samples)
    miss = (1 - confidence) / 2
    up_to = np.cumsum([_chance(below, count, share) for below in range(count + 1)])  # so many or fewer below
    low = max((place for place in range(count) if up_to[place] <= miss), default=0)
    high = min((place for place in range(count) if 1 - up_to[place] <= miss), default=count - 1)
    coverage = float(up_to[high] - up_to[low])
    return Interval(ordered[low], float(np.quantile(ordered, share)), ordered[high], coverage, count)


def median_of(rounds: Sequence[float]) -> Interval:
    """The median over rounds."""
    return quantile_of(rounds, 0.5)


def percentile_of(rounds: Sequence[Round], percent: float) -> Interval | None:
    """A percentile of the latencies in ms: the median of the rounds' own where each round has enough calls to tell,
    else that of all calls together, or None where even those are too few."""
    share = percent / 100
    needed = round(1 / (1 - share))
    if all(len(each.latency_ms) >= needed for each in rounds):
        return median_of([float(np.quantile(each.latency_ms, share)) for each in rounds])
    calls = [latency for each in rounds for latency in each.latency_ms]
    return quantile_of(calls, share) if len(calls) >= needed else None


def _chance(below: int, count: int, share: float) -> float:
    """That exactly so many of `count` lie below; by logarithms, as the factors leave the range of numbers."""
    ways = math.lgamma(count + 1) - math.lgamma(below + 1) - math.lgamma(count - below + 1)
    return math.exp(ways + below * math.log(share) + (count - below) * math.log(1 - share))
