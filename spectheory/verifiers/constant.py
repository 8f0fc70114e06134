"""Constant acceptance: the "synthetic" modes of benchmarks, which accept a given share whatever was drafted."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ..arrays import Array, align, ones_like
from ..errors import UsageError
from .token import Sweep, TokenRule


@dataclass(frozen=True)
class Constant(TokenRule):
    """A = rate for every token, standard residual: an arbitrary loss by design. `rate` in [0, 1]; raises UsageError otherwise."""

    rate: float | Fraction
    SWEEP: ClassVar[Sweep] = ("rate", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise UsageError(f"rate must lie in [0, 1], not {self.rate}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        return self.rate * ones_like(p + 0 * q)
