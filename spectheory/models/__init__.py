"""Target/draft pairs, as rows of laws and as sequence models."""

from .synthetic import FAMILIES, synthetic_pairs
from .tabular import Tabular, as_table, coarse_tabular, merge_tokens, random_tabular, unroll

__all__ = [
    "FAMILIES",
    "Tabular",
    "as_table",
    "coarse_tabular",
    "merge_tokens",
    "random_tabular",
    "synthetic_pairs",
    "unroll",
]
