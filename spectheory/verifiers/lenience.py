"""Lenience: the standard test with the draft probability scaled down."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from ..arrays import Array, align
from ..errors import UsageError
from ..pmf import residual
from .token import Sweep, TokenRule, capped_ratio


@dataclass(frozen=True)
class Lenience(TokenRule):
    """A = min(1, p / (l q)), 0 < l <= 1; residual `standard` (p - q)_+ or `scaled` (p - l q)_+.

    With either residual the output is at most p / l; the standard one is TV-optimal (theorem N7), the scaled one can be
    worse. Raises UsageError for l outside (0, 1]. Source: Leviathan et al. 2211.17192, App. A.5.
    """

    lenience: float | Fraction
    correction_law: Literal["standard", "scaled"] = "standard"
    SWEEP: ClassVar[Sweep] = ("lenience", (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0))

    def __post_init__(self) -> None:
        if not 0 < self.lenience <= 1:
            raise UsageError(f"lenience must lie in (0, 1], not {self.lenience}")
        if self.correction_law not in ("standard", "scaled"):
            raise UsageError(f"correction_law must be standard or scaled, not {self.correction_law!r}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        return capped_ratio(p, self.lenience * q)

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        return residual(p, q if self.correction_law == "standard" else self.lenience * q)
