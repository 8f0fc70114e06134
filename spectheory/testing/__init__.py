"""Public tools for testing verifiers: Hypothesis strategies and statistical asserts with stated error rates."""

from .races import budgets, calibrated, lists, path_laws, race_pairs, rank_laws, skewed_pairs
from .strategies import laws, nuclei, pairs, rational_laws, rational_pairs, top_ps

__all__ = [
    "budgets",
    "calibrated",
    "laws",
    "lists",
    "nuclei",
    "pairs",
    "path_laws",
    "race_pairs",
    "rank_laws",
    "rational_laws",
    "rational_pairs",
    "skewed_pairs",
    "top_ps",
]
