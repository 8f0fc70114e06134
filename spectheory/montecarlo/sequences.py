"""Confidence sequences: intervals for a bounded mean that hold at every sample size at once, so one may stop when one likes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DataError
from ..results import Interval


def confidence_sequence(x: Any, alpha: float) -> Interval:
    """The confidence sequence for the mean of independent `x` (n,) in [0, 1], after its n values.

    With probability >= 1 - `alpha` the mean lies in the interval of every n: stopping rules that look at the data are
    allowed. A gambler stakes a predictable fraction of its capital on x_i > m, another on x_i < m; m stays in the set while
    neither has ever held 2 / `alpha` (Ville). Both sets are half lines in m, so bisection finds their ends; they are rounded
    outwards. Source: Waudby-Smith and Ramdas 2010.09686, theorem 3 with the stakes of equation 26. Raises DataError for
    values outside [0, 1].
    """
    x = np.asarray(x, dtype=np.float64)
    if not ((x >= 0) & (x <= 1)).all():
        raise DataError("a confidence sequence needs values in [0, 1]")
    if not len(x):
        return Interval(0.0, None, 1.0, "statistical", alpha, "betting confidence sequence")
    stakes = _stakes(x, alpha)
    low = _bisect(lambda m: _refuted(x, stakes, m, alpha))
    high = 1 - _bisect(lambda m: _refuted(1 - x, stakes, m, alpha))
    mean = float(x.mean())
    return Interval(min(low, mean), mean, max(high, mean), "statistical", alpha, "betting confidence sequence")


def _stakes(x: Any, alpha: float) -> Any:
    """Predictable stakes sqrt(2 ln(2 / alpha) / (variance so far * t ln(1 + t)))."""
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    spread = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    return np.sqrt(2 * math.log(2 / alpha) / (before * t * np.log1p(t)))


def _refuted(x: Any, stakes: Any, m: float, alpha: float) -> bool:
    """True if betting on x_i > m has ever multiplied its capital by 2 / alpha: the mean is not m or less. Monotone in m."""
    fraction = np.minimum(stakes, 0.5 / m) if m > 0 else stakes
    return bool(np.cumsum(np.log1p(fraction * (x - m))).max() >= math.log(2 / alpha))


def _bisect(refuted: Callable[[float], bool], steps: int = 40) -> float:
    """The largest refuted m found, 0 if none is: outside the set by at most 2^-steps."""
    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
