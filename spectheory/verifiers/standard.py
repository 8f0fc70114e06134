"""The standard rule of speculative sampling."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Array
from .token import TokenRule, capped_ratio


@dataclass(frozen=True)
class Standard(TokenRule):
    """A = min(1, p/q), r = (p - q)_+ normalised: lossless (theorem S1), and no exact token rule accepts more (S2).

    Source: Leviathan et al. 2211.17192, Chen et al. 2302.01318.
    """

    def acceptance(self, p: Array, q: Array) -> Array:
        return capped_ratio(p, q)
