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
from .statistics import assert_law, assert_rate, detectable_deviation, sample_size_for
from .strategies import laws, nuclei, pairs, rational_laws, rational_pairs, top_ps

__all__ = [
    "RegretRequest",
    "assert_law",
    "assert_rate",
    "compact_scores",
    "detectable_deviation",
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
    "sample_size_for",
    "tabular_pairs",
    "top_ps",
]
