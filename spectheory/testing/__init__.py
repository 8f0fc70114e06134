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
from .lossless import assert_lossless
from .races import budgets, calibrated, lists, path_laws, race_pairs, rank_laws, skewed_pairs
from .search import counterexample
from .statistics import (
    assert_law,
    assert_rate,
    detectable_deviation,
    detectable_rate_deviation,
    sample_size_for,
    trials_for,
)
from .strategies import blocks, laws, nuclei, pairs, rational_laws, rational_pairs, top_ps
from .tabular import TableRule, engines, table_rules, tabulars

__all__ = [
    "RegretRequest",
    "TableRule",
    "assert_law",
    "assert_lossless",
    "assert_rate",
    "blocks",
    "budgets",
    "calibrated",
    "compact_scores",
    "counterexample",
    "detectable_deviation",
    "detectable_rate_deviation",
    "engines",
    "greedy_blocks",
    "laws",
    "lists",
    "nuclei",
    "pairs",
    "path_laws",
    "race_pairs",
    "rank_laws",
    "rational_laws",
    "rational_pairs",
    "regret_blocks",
    "regret_budgets",
    "regret_positions",
    "regret_requests",
    "regret_traces",
    "run_regret_request",
    "sample_size_for",
    "skewed_pairs",
    "table_rules",
    "tabular_pairs",
    "tabulars",
    "top_ps",
    "trials_for",
]
