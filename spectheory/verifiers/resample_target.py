"""The standard test with the wrong correction: a rejected position is drawn again from the target itself."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Array, align
from .token import TokenRule, capped_ratio


@dataclass(frozen=True)
class ResampleTarget(TokenRule):
    """A = min(1, p/q), r = p. Not lossless: the mass below the draft is drawn twice (theorem N4 says how much is lost)."""

    def acceptance(self, p: Array, q: Array) -> Array:
        return capped_ratio(p, q)

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        return p + 0 * q
