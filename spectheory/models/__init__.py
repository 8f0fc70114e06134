"""Target/draft pairs as sequence models."""

from .tabular import Tabular, as_table, coarse_tabular, merge_tokens, random_tabular, unroll

__all__ = ["Tabular", "as_table", "coarse_tabular", "merge_tokens", "random_tabular", "unroll"]
