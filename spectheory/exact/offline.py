"""What a regret budget could buy with hindsight: the best stopping length in every block, as a knapsack (theorem A10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..verifiers.regret_budget import SLACK, RegretBudget


@dataclass(frozen=True)
class Offline:
    """The best plan for recorded blocks: total `accepted`, stopping `lengths` (n,), nats `spent`."""

    accepted: int
    lengths: Array
    spent: float


def offline_optimum(rule: RegretBudget, blocks: Sequence[tuple[Any, Any]]) -> Offline:
    """Most accepted tokens over one request's recorded blocks [(matches (K,), regrets (K,))] within the budget.

    One stopping length a block, within its gate- and cap-feasible prefix (multiple-choice knapsack): least spend for
    every total length, block by block. The budget has the rule's own slack, n 1e-9 for `suffix`, so that the rule
    itself is one of the plans. O(n^2 K^2); exact up to float sums. Recorded blocks are held fixed: decoding along the
    plan would have met other blocks.
    """
    costs = [prefix_costs(rule, *block) for block in blocks]
    least = np.zeros(1)
    choices = []
    for cost in costs:
        longer = np.full((len(cost), len(least) + len(cost) - 1), np.inf)
        for n, c in enumerate(cost):
            longer[n, n : n + len(least)] = least + c
        choices.append(longer.argmin(axis=0))
        least = longer.min(axis=0)
    limit = float(rule.budget) + (len(costs) * float(SLACK) if rule.variant == "suffix" else 0.0)
    best = int(np.flatnonzero(least <= limit)[-1])
    lengths, left = np.zeros(len(costs), dtype=np.int64), best
    for b in range(len(costs) - 1, -1, -1):
        lengths[b] = choices[b][left]
        left -= lengths[b]
    return Offline(best, lengths, float(least[best]))


def prefix_costs(rule: RegretBudget, matches: Any, regrets: Any) -> Array:
    """Spend of every gate- and cap-feasible prefix of a block, (L + 1,) for lengths 0..L."""
    costs, exceptions, size = [0.0], 0, len(matches)
    for i in range(size):
        cost = 0.0
        if not matches[i]:
            if rule.strict or exceptions >= rule.cap or not rule.within_gate(regrets[i], i, size):
                break
            cost, exceptions = float(regrets[i]), exceptions + 1
        costs.append(costs[-1] + cost)
    return np.array(costs)
