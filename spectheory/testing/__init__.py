"""Public tools for testing verifiers: Hypothesis strategies and statistical asserts with stated error rates."""

from .strategies import laws, nuclei, pairs, rational_laws, rational_pairs, top_ps
from .tabular import TableRule, engines, table_rules, tabulars

__all__ = [
    "TableRule",
    "engines",
    "laws",
    "nuclei",
    "pairs",
    "rational_laws",
    "rational_pairs",
    "table_rules",
    "tabulars",
    "top_ps",
]
