"""Sample the target, keep the draft if it is equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Array, align, one_hot, ratio, total, where, zeros_like
from .token import TokenRule


@dataclass(frozen=True)
class SampleAndMatch(TokenRule):
    """A = p(x), r = p without x: lossless for ANY draft, deterministic ones included, at a lower acceptance sum p q.

    The rule of one-hot ("target-only") verifiers; the residual depends on the rejected token.
    """

    residual_depends_on_rejected: ClassVar[bool] = True

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = align(p, q)
        return p + 0 * q

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = align(p, q)
        kept = where(one_hot(np.asarray(rejected), p) == 1, zeros_like(p), p)
        return ratio(kept, total(kept, keepdims=True) + 0 * kept, 0)

    def correction(self, p: Array, q: Array) -> Array:
        """p (1 - q): summing q(x) p(y) over the rejected x != y."""
        p, q = align(p, q)
        return p * (1 - q)
