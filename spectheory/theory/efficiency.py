"""What acceptance buys and what speed must cost: break-even, the least deviation behind a speed-up, published figures.

The speed model is that of `theory.standard.speedup`: one chain, K sequential drafts a call at c target steps each, one
verification at v target steps, no overlap of drafting and verification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from .standard import expected_tokens, speedup, speedup_cap


def tokens_from_blocks(acceptance: Array) -> float:
    """E[tokens per call] from acceptance probabilities (blocks, K) of recorded drafts: mean of 1 + sum_i prod_{l <= i} a_l."""
    a = np.asarray(acceptance, dtype=np.float64)
    return float(1 + np.cumprod(a, axis=1).sum(axis=1).mean())


def tokens_from_rows(acceptance: Array, block_size: int) -> float:
    """E[tokens per call] from acceptance rates (n,) of recorded rows met in random order: S3 at their mean."""
    return float(expected_tokens(float(np.mean(acceptance)), block_size))


def least_acceptance(
    target_speedup: float, block_size: int, cost_ratio: float, verification_cost: float = 1.0
) -> float:
    """The least i.i.d. acceptance beta with speed-up `target_speedup`; NaN where it exceeds the cap (K + 1) / (K c + v).

    1 is break-even with autoregressive decoding. Raises UsageError as `speedup`.
    """
    cap = speedup_cap(block_size, cost_ratio, verification_cost)
    if target_speedup > cap * (1 + 1e-12):
        return float("nan")
    return _inverse_tokens(target_speedup * (block_size * cost_ratio + verification_cost), block_size)


def _inverse_tokens(tokens: float, block_size: int) -> float:
    """beta in [0, 1] with expected_tokens(beta, K) = `tokens`, by bisection: it increases in beta."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if expected_tokens(middle, block_size) >= tokens else (middle, high)
    return high


def deviation_floor(beta: Any, tv: Any) -> Any:
    """The least one-step deviation of any rule that accepts at rate `beta` where TV(p, q) = `tv`, by V.line.

    max(0, beta - 1 + tv); NSD reaches it (N2). Exact on Fractions.
    """
    return max(0 * beta, beta - 1 + tv)


def least_deviation(
    target_speedup: float, tv: float, block_size: int, cost_ratio: float, verification_cost: float = 1.0
) -> float:
    """The one-step deviation that any rule pays for `target_speedup` where TV(p, q) = `tv` (V.line); NaN beyond the cap."""
    beta = least_acceptance(target_speedup, block_size, cost_ratio, verification_cost)
    return float(deviation_floor(beta, tv)) if beta == beta else beta


def ratio_over_standard(beta: float, tv: float, block_size: int) -> float:
    """Speed-up over the standard rule at equal K, c and v: E[tokens] at `beta` over that at 1 - `tv`; costs cancel."""
    return float(expected_tokens(beta, block_size) / expected_tokens(1 - tv, block_size))


def explain_speedups(
    over_autoregressive: float, over_standard: float, block_sizes: Sequence[int], verification_cost: float = 1.0
) -> list[dict[str, float]]:
    """Which (beta, Delta, K, c) can show both speed-ups at once: for each K the ranges, at acceptance 1 and at the least.

    The standard rule then runs at s = over_autoregressive / over_standard. `cost_ratio`: the largest c (at acceptance 1);
    `standard_acceptance`: the largest 1 - D, at which the rule must accept everything; `deviation`: Delta there, = D by
    V.line, and the least possible where 1 - D is lower is `deviation_free_draft` (c = 0, beta solved). NaN: impossible.
    """
    out = []
    for k in block_sizes:
        most = ((k + 1) / over_autoregressive - verification_cost) / k
        standard = _inverse_tokens((k + 1) / over_standard, k) if k + 1 >= over_standard else float("nan")
        beta = least_acceptance(over_autoregressive, k, 0.0, verification_cost)
        slow = over_autoregressive * verification_cost / over_standard  # tokens a call of the standard rule at c = 0
        base = _inverse_tokens(slow, k) if slow >= 1 and beta == beta else float("nan")
        out.append(
            {
                "block_size": k,
                "cost_ratio": most if most >= 0 else float("nan"),
                "standard_acceptance": standard if most >= 0 else float("nan"),
                "deviation": 1 - standard if most >= 0 else float("nan"),
                "acceptance_free_draft": beta,
                "standard_acceptance_free_draft": base,
                "deviation_free_draft": beta - base,
            }
        )
    return out


def speedup_of(beta: float, block_size: int, cost_ratio: float, verification_cost: float = 1.0) -> float:
    """Speed-up over autoregressive decoding at i.i.d. acceptance `beta`."""
    return float(speedup(expected_tokens(beta, block_size), block_size, cost_ratio, verification_cost))
