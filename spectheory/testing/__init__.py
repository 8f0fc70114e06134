"""Public tools for testing verifiers: Hypothesis strategies and statistical asserts with stated error rates."""

from .budget import (
    RegretRequest,
    compact_scores,
    greedy_blocks,
    regret_blocks,
    regret_budgets,
    regret_positions,
    regret_requests,
    regret_traces,
    run_regret_request,
    tabular_pairs,
)
from .strategies import laws, nuclei, pairs, rational_laws, rational_pairs, top_ps

__all__ = [
    "RegretRequest",
    "compact_scores",
    "greedy_blocks",
    "laws",
    "nuclei",
    "pairs",
    "rational_laws",
    "rational_pairs",
    "regret_blocks",
    "regret_budgets",
    "regret_positions",
    "regret_requests",
    "regret_traces",
    "run_regret_request",
    "tabular_pairs",
    "top_ps",
]
