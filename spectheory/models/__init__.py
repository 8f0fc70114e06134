"""Target/draft pairs, as rows of laws and as sequence models."""

from .synthetic import FAMILIES, synthetic_pairs

__all__ = ["FAMILIES", "synthetic_pairs"]
