"""Sample-and-match with two thresholds that accept more than p(x)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ..arrays import Array, align, minimum, ones_like, ratio, total, where
from ..errors import UsageError
from .sample_and_match import SampleAndMatch
from .token import Sweep


@dataclass(frozen=True)
class Thresholds(SampleAndMatch):
    """A = 1 where p(x) >= single, else min(1, p(x) / acc); after a rejection r = p without x.

    With the defaults 1, 1 it is `SampleAndMatch`, exact for any draft; otherwise its deviation is at most the acceptance
    it gains over that rule. `single` and `acc` in (0, 1]. Raises UsageError otherwise. Source: SGLang's
    speculative_accept_threshold_single and _acc.
    """

    single: float | Fraction = 1.0
    acc: float | Fraction = 1.0
    SWEEP: ClassVar[Sweep] = ("acc", (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0))

    def __post_init__(self) -> None:
        if not (0 < self.single <= 1 and 0 < self.acc <= 1):
            raise UsageError(f"single and acc must lie in (0, 1], not {self.single} and {self.acc}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        p = p + 0 * q
        return where(p >= self.single, ones_like(p), minimum(p / self.acc, 1))

    def correction(self, p: Array, q: Array) -> Array:
        """p(y) sum_{x != y} g(x), g = q (1 - A) / (1 - p): the rejected mass, spread over p without x."""
        p, q = align(p, q)
        spread = ratio(q * (1 - self.acceptance(p, q)), 1 - p + 0 * q, 0)
        return p * (total(spread, keepdims=True) - spread)
