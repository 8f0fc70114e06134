"""NSD: Nucleus Speculative Decoding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ..arrays import Array, align, ones_like, where
from ..pmf import nucleus
from ..pmf.nucleus import check_top_p
from .token import Sweep, TokenRule, capped_ratio


@dataclass(frozen=True)
class Nucleus(TokenRule):
    """Accept whatever lies in the target's top-p nucleus, the standard rule elsewhere; standard residual.

    Its one-step error is exactly the draft's excess mass inside the nucleus (theorem N1). `top_p` in [0, 1]; 0 is the
    standard rule. Raises UsageError otherwise. Source: 2610.07822.
    """

    top_p: float | Fraction
    SWEEP: ClassVar[Sweep] = ("top_p", (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0))

    def __post_init__(self) -> None:
        check_top_p(self.top_p)

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        ratio = capped_ratio(p, q)
        return where(nucleus(p, self.top_p) & (ratio >= 0), ones_like(ratio), ratio)
