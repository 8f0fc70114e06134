"""A verifier of one's own: two methods make a rule, and nothing needs to be imported."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class MyRule:
    """Accept p(x) >= share * max p; the standard rule elsewhere."""

    share: float = 0.3

    def acceptance(self, p, q):
        ratio = np.minimum(1, p / np.where(q > 0, q, 1))
        likely = p >= self.share * p.max(-1, keepdims=True)
        return np.where(likely | (q == 0), 1.0, ratio)

    def residual(self, p, q):
        excess = np.maximum(p - q, 0)
        mass = excess.sum(-1, keepdims=True)
        return np.where(mass > 0, excess / np.where(mass > 0, mass, 1), p)
