"""Target/draft pairs, as rows of laws and as sequence models."""

from .positions import Positions, recorded_positions
from .synthetic import FAMILIES, synthetic_pairs
from .tabular import Tabular, as_table, coarse_tabular, merge_tokens, random_tabular, unroll

__all__ = [
    "FAMILIES",
    "Positions",
    "Tabular",
    "as_table",
    "coarse_tabular",
    "merge_tokens",
    "random_tabular",
    "recorded_positions",
    "synthetic_pairs",
    "unroll",
]
