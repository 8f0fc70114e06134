"""Public tools for testing verifiers: Hypothesis strategies and statistical asserts with stated error rates."""

from .strategies import laws, nuclei, pairs, rational_laws, rational_pairs, top_ps

__all__ = ["laws", "nuclei", "pairs", "rational_laws", "rational_pairs", "top_ps"]
