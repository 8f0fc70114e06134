"""Public tools for testing verifiers: Hypothesis strategies and statistical asserts with stated error rates."""

from .races import budgets, calibrated, lists, path_laws, race_pairs, rank_laws, skewed_pairs
from .statistics import assert_law, assert_rate, detectable_deviation, sample_size_for
from .strategies import laws, nuclei, pairs, rational_laws, rational_pairs, top_ps

__all__ = [
    "assert_law",
    "assert_rate",
    "budgets",
    "calibrated",
    "detectable_deviation",
    "laws",
    "lists",
    "nuclei",
    "pairs",
    "path_laws",
    "race_pairs",
    "rank_laws",
    "rational_laws",
    "rational_pairs",
    "sample_size_for",
    "skewed_pairs",
    "top_ps",
]
