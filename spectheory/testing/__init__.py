"""Public tools for testing verifiers: Hypothesis strategies and statistical asserts with stated error rates."""

from .search import counterexample
from .statistics import assert_law, assert_rate, detectable_deviation, sample_size_for
from .strategies import laws, nuclei, pairs, rational_laws, rational_pairs, top_ps
from .tabular import TableRule, engines, table_rules, tabulars

__all__ = [
    "TableRule",
    "assert_law",
    "assert_rate",
    "counterexample",
    "detectable_deviation",
    "engines",
    "laws",
    "nuclei",
    "pairs",
    "rational_laws",
    "rational_pairs",
    "sample_size_for",
    "table_rules",
    "tabulars",
    "top_ps",
]
