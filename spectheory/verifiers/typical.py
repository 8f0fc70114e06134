"""Typical acceptance: a threshold on the target probability alone, lower where the target is unsure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from ..arrays import Array, align, argmax, minimum, namespace, one_hot, ones_like, to_float, where, zeros_like
from ..errors import UsageError
from ..pmf import entropy
from .token import Sweep, TokenRule


@dataclass(frozen=True)
class Typical(TokenRule):
    """A = 1[p(x) > min(epsilon, delta e^{-H(p)})]; the correction is the argmax of p, or a draw from p.

    Both corrections are in use. Off the optimal line: it ignores q, so it also rejects tokens that the standard rule would
    accept. `epsilon` in [0, 1], `delta` >= 0; `correction_law` argmax or target. Raises UsageError otherwise.
    Source: Medusa 2401.10774 (epsilon .09, delta .3).
    """

    epsilon: float | Fraction = 0.09
    delta: float | Fraction = 0.3
    correction_law: Literal["argmax", "target"] = "argmax"
    SWEEP: ClassVar[Sweep] = ("epsilon", (0.0, 0.001, 0.005, 0.02, 0.05, 0.09, 0.2, 0.5))

    def __post_init__(self) -> None:
        if not (0 <= self.epsilon <= 1 and 0 <= self.delta < math.inf):
            raise UsageError(f"epsilon must lie in [0, 1] and delta be >= 0, not {self.epsilon} and {self.delta}")
        if self.correction_law not in ("argmax", "target"):
            raise UsageError(f"correction_law must be argmax or target, not {self.correction_law!r}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        p = p + 0 * q
        return where(to_float(p) > threshold(p, self.epsilon, self.delta), ones_like(p), zeros_like(p))

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        p = p + 0 * q
        return one_hot(argmax(p), p) if self.correction_law == "argmax" else p


def threshold(p: Array, epsilon: float | Fraction, delta: float | Fraction) -> Array:
    """min(epsilon, delta e^{-H(p)}), (..., 1), H in nats."""
    p = to_float(p)
    xp = namespace(p)
    spread = xp.exp(-xp.asarray(entropy(p)))[..., None]
    return minimum(float(delta) * spread, float(epsilon))
