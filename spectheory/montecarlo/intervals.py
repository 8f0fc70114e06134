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
