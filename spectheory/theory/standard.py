"""The standard rule: S1 (lossless), S2 (its acceptance rate, which no exact token rule exceeds), and what speed follows.

Sources: Leviathan et al. 2211.17192, Chen et al. 2302.01318.
"""

from __future__ import annotations

import math
from typing import Any

from ..arrays import Array, align
from ..errors import UsageError
from ..pmf import total_variation
from .registry import theorem

LEVIATHAN = "arXiv:2211.17192"


@theorem(
    "S1",
    source=f"{LEVIATHAN}, App. A.1",
    statement=r"\tilde p = p",
    relation="=",
    hypotheses="laws p, q over one vocabulary",
    status="proved",
)
def output_law(p: Array, q: Array) -> Array:
    """The law (..., V) that the standard rule emits: the target's."""
    p, q = align(p, q)
    return p + 0 * q


@theorem(
    "S2",
    source=f"{LEVIATHAN}, Cor. 3.6",
    statement=r"\beta = 1 - \mathrm{TV}(p, q)",
    relation="=",
    hypotheses="laws p, q over one vocabulary",
    status="proved",
)
def acceptance_rate(p: Array, q: Array) -> Array:
    """beta = 1 - TV(p, q), (...): the acceptance rate of the standard rule."""
    return 1 - total_variation(p, q)


@theorem(
    "S3",
    source=f"{LEVIATHAN}, eq. 1",
    statement=r"\mathbb{E}[\text{tokens per call}] = 1 + \sum_{i \le K} \beta^i",
    relation="=",
    hypotheses="acceptance independent of the position with rate beta",
    status="proved",
)
def expected_tokens(beta: Any, block_size: int) -> Any:
    """E[tokens per target call] = (1 - beta^{K+1}) / (1 - beta), K + 1 at beta = 1, for i.i.d. acceptance `beta`.

    Summed as 1 + beta + ... + beta^K: exact on Fractions, no cancellation near 1. Raises UsageError for K < 0.
    """
    if block_size < 0:
        raise UsageError(f"block_size must be >= 0, not {block_size}")
    total, power = 0 * beta + 1, 0 * beta + 1
    for _ in range(block_size):
        power = power * beta
        total = total + power
    return total


def speedup(tokens_per_call: Any, block_size: int, cost_ratio: float, verification_cost: float = 1.0) -> Any:
    """Speed-up over autoregressive decoding, E[tokens] / (K c + v).

    One chain, K sequential drafts a call at `cost_ratio` c = draft time / target time each, one verification at
    `verification_cost` v >= 1 target steps, no overlap of the two. Raises UsageError for c < 0 or v < 1.
    """
    if cost_ratio < 0 or verification_cost < 1:
        raise UsageError(
            f"cost_ratio must be >= 0 and verification_cost >= 1, not {cost_ratio} and {verification_cost}"
        )
    return tokens_per_call / (block_size * cost_ratio + verification_cost)


def speedup_cap(block_size: int, cost_ratio: float, verification_cost: float = 1.0) -> float:
    """(K + 1) / (K c + v): what no rule can exceed in the model of `speedup`, as a call commits at most K + 1 tokens."""
    return float(speedup(block_size + 1, block_size, cost_ratio, verification_cost))


def largest_cost_ratio(target_speedup: float, block_size: int, verification_cost: float = 1.0) -> float:
    """The largest draft cost ratio c at which `target_speedup` is possible at all; negative if it never is. -inf at K = 0."""
    if block_size == 0:
        return -math.inf
    return ((block_size + 1) / target_speedup - verification_cost) / block_size
