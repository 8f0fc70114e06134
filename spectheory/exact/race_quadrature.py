"""Certified quadrature of int_0^inf e^{-t} f(t) dt for measure-valued f(t) = product of (delta_0 + p_j(t) (delta_1 - delta_0)).

With p_j(t) = 1 - exp(-t a_j) and complex t of real part s > 0, |1 - exp(-t a)| <= (|t| / s) (1 - e^{-s a}) (integrate
e^{-wx} over x in [0, 1]), so the total-variation norm of a factor is at most 1 + (|t| / s - 1)(1 - e^{-s a}), and
    || f(t) || <= exp((|t| / s - 1) mu(s)),   mu(s) = sum_j (1 - e^{-s a_j}).
In v = ln t the integrand e^v e^{-e^v} f(e^v) is therefore analytic in |Im v| < theta < pi / 2 and its integral along
Im v = theta is at most M = sec(theta) int e^{-s} exp((sec(theta) - 1) mu(s)) ds. The trapezoidal rule of step h on the
whole line then errs by at most 2 M / (exp(2 pi theta / h) - 1) in norm (Trefethen and Weideman 2014, theorem 5.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import PrecisionError

_ANGLES = np.concatenate([np.geomspace(0.002, 0.05, 12), np.linspace(0.06, 1.5, 58)])
_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 48.0, 40)])


def trapezoid(mu: Callable[[float], float], budget: float) -> tuple[Any, Any, float, float]:
    """Nodes t (T,), weights w (T,), the mass to put on f(0), and the certified L1 error <= `budget`.

    `mu(s)` is the mean number of successes at time s: increasing and concave, as a sum of 1 - exp(-s a).
    """
    if budget < 1e-14:
        raise PrecisionError(f"a quadrature error of {budget:g} is below the floor 1e-14 of double precision")
    means = np.array([mu(float(s)) for s in _GRID])
    h, error = _step(means, 0.4 * budget)
    # Left end: nodes below t_0 are given to f(0) = delta_0, an L1 error of at most 2 sum w mu <= 2 mu(t_0) t_0.
    first = math.log(0.3 * budget)
    while (mu(math.exp(first + 1)) + 1e-300) * 2 * math.exp(first + 1) < 0.3 * budget and first < -1:
        first += 1
    last = math.log(math.log(1 / (0.2 * budget)) + 2)
    n0, n1 = math.floor(first / h), math.ceil(last / h)
    t = np.exp(h * np.arange(n0, n1 + 1))
    below = np.exp(h * np.arange(n0 - math.ceil(45 / h), n0))
    left = float((h * below * np.exp(-below)).sum())
    return t, h * t * np.exp(-t), left, error + 2 * mu(math.exp(n0 * h)) * left + math.exp(-float(t[-1])) * 2


def _step(means: Any, budget: float) -> tuple[float, float]:
    """The largest step h, over a grid of angles theta, whose certified error is `budget`."""
    best = 0.0
    for theta in _ANGLES:
        c = 1 / math.cos(theta) - 1
        slope = c * means[-1] / _GRID[-1]  # beyond the grid mu(s) <= mu(s_max) s / s_max by concavity
        if slope > 0.9 or c * means[-1] > 600:
            continue
        # Upper Riemann sum of int e^{-s} exp(c mu(s)) ds: mu increases.
        bulk = (np.exp(-_GRID[:-1]) - np.exp(-_GRID[1:])) @ np.exp(c * means[1:])
        tail = math.exp(c * means[-1] - _GRID[-1]) / (1 - slope)
        m = (c + 1) * (bulk + tail)
        best = max(best, 2 * math.pi * theta / math.log1p(2 * m / budget))
    if best == 0.0:
        raise PrecisionError(f"{means[-1]:.4g} tokens ahead at once are beyond the certified quadrature")
    return best, budget
