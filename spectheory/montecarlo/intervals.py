"""Intervals for means of bounded variables that hold at every sample size (no normal approximation)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betaincinv

from ..results import Interval


def clopper_pearson(successes: int, trials: int, alpha: float) -> Interval:
    """Two-sided interval for a success probability, from the exact binomial law. Covers with probability >= 1 - `alpha`."""
    k, n = int(successes), int(trials)
    lower = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, alpha / 2))
    upper = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - alpha / 2))
    return Interval(lower, k / n if n else None, upper, "statistical", alpha, "Clopper-Pearson")


def hoeffding(x: Any, alpha: float, bounds: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """Two-sided interval for the mean of independent `x` (n,) in `bounds`. Source: Hoeffding 1963."""
    x, (a, b) = np.asarray(x, dtype=np.float64), bounds
    half = (b - a) * math.sqrt(math.log(2 / alpha) / (2 * len(x)))
    mean = float(x.mean())
    return Interval(max(a, mean - half), mean, min(b, mean + half), "statistical", alpha, "Hoeffding")


def empirical_bernstein(x: Any, alpha: float, bounds: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """Two-sided interval for the mean of n >= 2 independent `x` (n,) in `bounds`; short where the variance is small.

    Source: Maurer and Pontil 2009 (0907.3740), theorem 4, once for each side.
    """
    x, (a, b) = np.asarray(x, dtype=np.float64), bounds
    n, log_term = len(x), math.log(4 / alpha)
    half = math.sqrt(2 * float(x.var(ddof=1)) * log_term / n) + 7 * (b - a) * log_term / (3 * (n - 1))
    mean = float(x.mean())
    return Interval(max(a, mean - half), mean, min(b, mean + half), "statistical", alpha, "empirical Bernstein")


def hedged_capital(x: Any, alpha: float, bounds: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """Two-sided interval for the mean of independent `x` (n,) in `bounds`: the means that no bet has refuted.

    For each candidate mean m a gambler stakes a predictable fraction of its capital on x_i > m, another on x_i < m; if m
    is the mean, neither average gains 1 / alpha with probability above `alpha` (Ville). Valid for every n >= 1, and much
    shorter than Hoeffding or Bernstein at small n. Depends on the order of `x`, which must not depend on their values.
    Source: Waudby-Smith and Ramdas 2010.09686, theorem 3, with capital split in halves.
    """
    x, (a, b) = np.asarray(x, dtype=np.float64), bounds
    if a == b:
        return Interval(a, a, b, "statistical", alpha, "betting")
    y = (x - a) / (b - a)
    n = len(y)
    t = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(y)) / (t + 1)
    spread = (0.25 + np.cumsum((y - mean) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]])  # predictable: known before x_i
    stake = np.sqrt(2 * np.log(2 / alpha) / (before * n))
    m = np.linspace(0, 1, 2001)[:, None]
    with np.errstate(divide="ignore"):
        up = np.log1p(np.minimum(stake, 0.5 / m) * (y - m)).sum(1)
        down = np.log1p(-np.minimum(stake, 0.5 / (1 - m)) * (y - m)).sum(1)
    gain, middle = np.maximum(up, down), float(y.mean())
    kept = np.flatnonzero(gain < np.log(2 / alpha))
    kept = kept if kept.size else np.array([gain.argmin()])  # a set narrower than the grid
    # one grid step outwards: the edge of the set lies between a refuted and an unrefuted candidate
    low, high = max(int(kept[0]) - 1, 0) / 2000, min(int(kept[-1]) + 1, 2000) / 2000
    low, high = min(low, middle), max(high, middle)
    return Interval(a + low * (b - a), a + middle * (b - a), a + high * (b - a), "statistical", alpha, "betting")
