"""Fuzzy acceptance: take the whole position from the draft wherever the two laws are close."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from ..arrays import Array, align, namespace, ones_like, to_float, where, zeros_like
from ..errors import UsageError
from ..pmf import kl, total_variation
from .token import Sweep, TokenRule


def jensen_shannon(p: Array, q: Array) -> Array:
    """JS(p, q) = (KL(p || m) + KL(q || m)) / 2, m = (p + q) / 2, in nats, (...)."""
    p, q = (to_float(x) for x in align(p, q))
    middle = (p + q) / 2
    return (kl(p, middle) + kl(q, middle)) / 2


DIVERGENCES: dict[str, Callable[[Array, Array], Array]] = {"tv": total_variation, "kl": kl, "js": jensen_shannon}


@dataclass(frozen=True)
class Fuzzy(TokenRule):
    """A = 1 for every token where divergence(p, q) <= threshold, else 0; a rejected token is replaced by a draw from p.

    It emits q at close positions and p elsewhere. `divergence`: tv, kl (p || q) or js, in nats. `threshold` >= 0. Raises
    UsageError otherwise. Source: FSD 2502.20704.
    """

    threshold: float | Fraction
    divergence: Literal["tv", "kl", "js"] = "tv"
    SWEEP: ClassVar[Sweep] = ("threshold", (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0))

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < math.inf:
            raise UsageError(f"threshold must be a finite number >= 0, not {self.threshold}")
        if self.divergence not in DIVERGENCES:
            raise UsageError(f"divergence must be one of {', '.join(DIVERGENCES)}, not {self.divergence!r}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        p, q = p + 0 * q, q + 0 * p
        close = namespace(to_float(p)).asarray(DIVERGENCES[self.divergence](p, q) <= self.threshold)[..., None]
        return where(close & (q >= 0), ones_like(p), zeros_like(p))

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        return p + 0 * q
