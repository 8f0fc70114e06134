"""Ensemble: exact sampling from a mixture of target and draft."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ..arrays import Array, align
from ..errors import UsageError
from .token import Sweep, TokenRule, capped_ratio


@dataclass(frozen=True)
class Ensemble(TokenRule):
    """The standard rule with target v = w p + (1 - w) q: A = min(1, v / q), r = (v - q)_+ = w (p - q)_+ normalised.

    It emits v exactly, so its deviation is (1 - w) TV(p, q), on the optimal line. `weight` w in [0, 1]; 1 is the standard
    rule, 0 emits the draft. Raises UsageError otherwise. Source: DIVERSED 2604.07622; the ensemble weight of assisted
    generation in Transformers.
    """

    weight: float | Fraction
    SWEEP: ClassVar[Sweep] = ("weight", (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0))

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise UsageError(f"weight must lie in [0, 1], not {self.weight}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        return capped_ratio(self.weight * p + (1 - self.weight) * q, q)
