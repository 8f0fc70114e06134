"""Block verification: the drafts of a block are tested jointly, which never accepts fewer than token by token.

Source: Sun et al., Block Verification Accelerates Speculative Decoding, 2403.10444.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, maximum, total
from ..pmf import residual
from ..protocols import Block, Verdict
from .token import draw_coins, inverse_cdf, laws_of


def running_ratios(block: Block) -> list[Any]:
    """P_0..P_K with P_0 = 1, P_i = min(1, P_{i-1} p_i(x_i) / q_i(x_i)): the capped likelihood ratio of each draft prefix."""
    p, q = laws_of(block)
    out: list[Any] = [1 + 0 * p[0, 0]]
    for i, x in enumerate(block.tokens):
        out.append(min(out[0], out[-1] * p[i, x] / q[i, x]))
    return out


@dataclass(frozen=True)
class BlockVerification:
    """Keep tau = the last i whose coin passes u_i < h_i, then draw (P_tau p - q)_+ normalised, or p after a whole block.

    h_i = S_i / (S_i + 1 - P_i), S_i = sum (P_i p_{i+1} - q_{i+1})_+, h_K = P_K. Exact for every model and block size;
    expected accepted length is never below the token-wise rule's. At 0/0 (P_i = 1 and p_{i+1} = q_{i+1}) a later test
    passes surely, so h_i is irrelevant there (1). Source: 2403.10444.
    """

    def start(self) -> None:
        """No state is carried from block to block."""
        return

    def keep(self, block: Block) -> list[Any]:
        """h_1..h_K of a block: the probability of passing each test. Raises DataError for a block without laws."""
        p, q = laws_of(block)
        capped = running_ratios(block)
        h = []
        for i in range(1, block.size):
            excess = total(maximum(capped[i] * p[i] - q[i], 0))
            below = excess + 1 - capped[i]
            h.append(excess / below if below > 0 else capped[0])
        return [*h, *capped[block.size :]][: block.size]

    def next_law(self, block: Block, accepted: int) -> Array:
        """Law (V,) of the token after `accepted` drafts."""
        p, q = laws_of(block)
        if accepted == block.size:
            return p[accepted]
        return residual(running_ratios(block)[accepted] * p[accepted], q[accepted])

    def verify(self, block: Block, state: Any = None, rng: Any = None) -> Verdict:
        """Run one block; K coins for the tests, one for the draw. Raises DataError for bad laws or ids."""
        h = self.keep(block)
        coins = draw_coins(rng, block.size)
        tau = max((i + 1 for i in range(block.size) if coins.accept[i] < h[i]), default=0)
        y = inverse_cdf(self.next_law(block, tau), float(coins.residual[0]))
        return Verdict(tau, np.append(block.tokens[:tau], y))

    def outcomes(self, block: Block, state: Any = None) -> list[tuple[Any, int, Array, Any]]:
        """[(probability, accepted, next law (V,), None)]: tau = i where test i passes and all later ones fail."""
        out, later_fail = [], 1
        for i, h in reversed(list(enumerate(self.keep(block), start=1))):
            if h * later_fail > 0:
                out.append((h * later_fail, i, self.next_law(block, i), None))
            later_fail = later_fail * (1 - h)
        if later_fail > 0:
            out.append((later_fail, 0, self.next_law(block, 0), None))
        return out
