"""Mentored decoding: the most acceptance that a budget of KL(target || emitted) allows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, align, is_rational, maximum, namespace, ratio, total, where
from ..errors import UsageError
from .token import Sweep, TokenRule, capped_ratio


@dataclass(frozen=True)
class Mentored(TokenRule):
    """A = min(1, p / (alpha q)), r proportional to (p / beta - q)_+, alpha <= 1 <= beta, beta so that both make a law.

    It emits the median of p / beta, q and p / alpha, pointwise (theorem V.mentored), and no rule with the same
    KL(p || emitted) accepts more (V.mentored.optimal). `alpha` in (0, 1]; 1 is the standard rule. Raises UsageError
    otherwise. Source: Tran-Thien 2023, "An optimal lossy variant of speculative decoding".
    """

    alpha: float | Fraction
    SWEEP: ClassVar[Sweep] = ("alpha", (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0))

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise UsageError(f"alpha must lie in (0, 1], not {self.alpha}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        return capped_ratio(p, self.alpha * q)

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        p, q = p + 0 * q, q + 0 * p
        rejected_mass = total(maximum(q - p / self.alpha, 0), keepdims=True)
        excess = maximum(inverse_beta(p, q, rejected_mass) * p - q, 0)
        mass = total(excess, keepdims=True)
        return where(mass > 0, ratio(excess, mass + 0 * excess, 0), p)


def inverse_beta(p: Array, q: Array, mass: Array) -> Array:
    """The t = 1 / beta in [0, 1] with sum (t p - q)_+ = `mass` (..., 1).

    The left side is the largest of t P_k - Q_k over prefixes k of the tokens by q / p ascending, P and Q their masses,
    so t is the least (mass + Q_k) / P_k: no search, exact on Fractions.
    """
    order = ratio(q, p, np.inf)
    if is_rational(p) or isinstance(p, np.ndarray):
        xp: Any = np
        ids = np.argsort(order, axis=-1, kind="stable")
        sums = [np.cumsum(np.take_along_axis(x, ids, axis=-1), axis=-1) for x in (p, q)]
        return np.min(ratio(mass + sums[1], sums[0], np.inf), axis=-1, keepdims=True)
    xp = namespace(p)
    ids = xp.argsort(order, axis=-1)
    sums = [xp.cumulative_sum(xp.take_along_axis(x, ids, axis=-1), axis=-1) for x in (p, q)]
    return xp.min(ratio(mass + sums[1], sums[0], np.inf), axis=-1, keepdims=True)
