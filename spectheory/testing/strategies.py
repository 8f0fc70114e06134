"""Hypothesis strategies whose values satisfy a theorem's hypotheses by construction and shrink to readable instances."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

# Small whole weights shrink to readable laws; zeros and repeats (ties) are common on purpose.
_WEIGHTS = st.one_of(st.integers(0, 10), st.sampled_from([0, 0, 1, 1, 2, 3, 50, 1000]))


@st.composite
def rational_laws(draw: st.DrawFn, vocab_size: int | None = None, min_size: int = 1, max_size: int = 6) -> Any:
    """Laws (V,) of Fractions, zeros and ties included."""
    size = vocab_size or draw(st.integers(min_size, max_size))
    weights = draw(st.lists(_WEIGHTS, min_size=size, max_size=size).filter(any))
    return np.array([Fraction(w, sum(weights)) for w in weights], dtype=object)


@st.composite
def laws(draw: st.DrawFn, vocab_size: int | None = None, min_size: int = 1, max_size: int = 6) -> Any:
    """Laws (V,) in float64: the rational ones rounded, so zeros and exact ties are common."""
    return draw(rational_laws(vocab_size, min_size, max_size)).astype(np.float64)


@st.composite
def rational_pairs(draw: st.DrawFn, min_size: int = 1, max_size: int = 6) -> Any:
    """Pairs (p, q) of Fractions over one vocabulary; equal, disjoint and one-hot pairs occur."""
    size = draw(st.integers(min_size, max_size))
    p = draw(rational_laws(size))
    return p, draw(rational_laws(size)) if draw(st.integers(0, 7)) else p


@st.composite
def pairs(draw: st.DrawFn, min_size: int = 1, max_size: int = 6) -> Any:
    """Pairs (p, q) in float64 over one vocabulary."""
    p, q = draw(rational_pairs(min_size, max_size))
    return p.astype(np.float64), q.astype(np.float64)


def top_ps() -> st.SearchStrategy[Any]:
    """Fractions in [0, 1] for top_p, ends and common settings included."""
    common = [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(95, 100)]
    return st.one_of(st.sampled_from(common), st.fractions(0, 1, max_denominator=20))


@st.composite
def nuclei(draw: st.DrawFn, min_size: int = 1, max_size: int = 6) -> Any:
    """Triples (p, q, top_p) in Fractions: what NSD's theorems quantify over."""
    p, q = draw(rational_pairs(min_size, max_size))
    return p, q, draw(top_ps())
