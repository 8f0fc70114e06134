"""Additive slack: the standard ratio plus a bonus where the target is unsure."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ..arrays import Array, align, minimum, peak
from ..errors import UsageError
from .token import Sweep, TokenRule, capped_ratio


@dataclass(frozen=True)
class AdditiveSlack(TokenRule):
    """A = min(1, p/q + tolerance (1 - max p)), standard residual. On the optimal line, as every over-accepting rule.

    `tolerance` in [0, 1]. Raises UsageError otherwise. Source: EARS 2512.13194.
    """

    tolerance: float | Fraction
    SWEEP: ClassVar[Sweep] = ("tolerance", (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0))

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance <= 1:
            raise UsageError(f"tolerance must lie in [0, 1], not {self.tolerance}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        return minimum(capped_ratio(p, q) + self.tolerance * (1 - peak(p)), 1)
