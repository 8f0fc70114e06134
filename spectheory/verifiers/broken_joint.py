"""Negative controls whose every single step is the standard rule, and whose blocks are wrong: one-step audits pass them.

Restated from public bug reports on serving engines. Each offers `verify` and `outcomes`, and so `exact.block_law`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import Array
from ..protocols import Block, Verdict
from .block import running_ratios
from .standard import Standard
from .token import draw_coins, inverse_cdf, laws_of


@dataclass(frozen=True)
class JointFault(Standard):
    """The standard rule with a fault that shows only in blocks; subclasses override one hook."""

    def pass_law(self, block: Block) -> list[Any]:
        """P(exactly i drafts accepted), i = 0..K: token-wise tests with independent coins."""
        reach, out = 1, []
        for a in self.ratios(block):
            out.append(reach * (1 - a))
            reach = reach * a
        return [*out, reach]

    def accepted(self, block: Block, coins: Array) -> int:
        """How many drafts these coins (K,) accept."""
        failed = [i for i, a in enumerate(self.ratios(block)) if not coins[i] < a]
        return failed[0] if failed else block.size

    def next_law(self, block: Block, accepted: int) -> Array:
        """Law (V,) of the token after `accepted` drafts: the residual, or the bonus row's target."""
        p, q = laws_of(block)
        return p[accepted] if accepted == block.size else self.residual(p[accepted], q[accepted])

    def ratios(self, block: Block) -> list[Any]:
        """A(x_i) of each draft."""
        p, q = laws_of(block)
        return [self.acceptance(p[i], q[i])[x] for i, x in enumerate(block.tokens)]

    def verify(self, block: Block, state: Any = None, rng: Any = None) -> Verdict:
        coins = draw_coins(rng, block.size)
        n = self.accepted(block, coins.accept)
        y = inverse_cdf(self.next_law(block, n), float(coins.residual[0]))
        return Verdict(n, np.append(block.tokens[:n], y))

    def outcomes(self, block: Block, state: Any = None) -> list[tuple[Any, int, Array, Any]]:
        law = enumerate(self.pass_law(block))
        return [(mass, i, self.next_law(block, i), None) for i, mass in law if mass > 0]


@dataclass(frozen=True)
class SharedUniform(JointFault):
    """One uniform serves every position of the block: position 1 is exact, the joint law is not."""

    def pass_law(self, block: Block) -> list[Any]:
        reach = [1]
        for a in self.ratios(block):  # u < every A so far, iff u is below their minimum
            reach.append(min(reach[-1], a))
        return [*(a - b for a, b in pairwise(reach)), reach[-1]]

    def accepted(self, block: Block, coins: Array) -> int:
        return super().accepted(block, np.full(block.size, coins[0]) if block.size else coins)


@dataclass(frozen=True)
class ResidualBonus(JointFault):
    """The bonus token is drawn from the residual of the last drafted position."""

    def next_law(self, block: Block, accepted: int) -> Array:
        p, q = laws_of(block)
        row = max(min(accepted, block.size - 1), 0)
        return self.residual(p[row], q[row])


@dataclass(frozen=True)
class StaleBonus(JointFault):
    """The bonus token is drawn from the target row of the last drafted position: invisible without context."""

    def next_law(self, block: Block, accepted: int) -> Array:
        if accepted < block.size or block.size == 0:
            return super().next_law(block, accepted)
        return laws_of(block)[0][block.size - 1]


@dataclass(frozen=True)
class NoStop(JointFault):
    """Block-style tests u_i < P_i (capped running ratio) without block verification's weights, token residual.

    Accepts up to the last test that passes, whether or not earlier ones did.
    """

    def pass_law(self, block: Block) -> list[Any]:
        out, later_fail = [], 1
        for p in reversed(running_ratios(block)):  # P_0 = 1 passes surely
            out.append(later_fail * p)
            later_fail = later_fail * (1 - p)
        return out[::-1]

    def accepted(self, block: Block, coins: Array) -> int:
        tests = running_ratios(block)[1:]
        return max((i + 1 for i, p in enumerate(tests) if coins[i] < p), default=0)
