"""Hypothesis strategies for exponential races, rank laws and draft budgets: what the theorems of ERSD quantify over."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .strategies import law_of, rational_laws, rational_pairs


@st.composite
def race_pairs(draw: st.DrawFn, min_size: int = 1, max_size: int = 4, top: int = 12) -> Any:
    """Pairs (P, Q) of Fractions with Q > 0 (P may have zeros): every rate a_ij is finite. Weights up to `top`."""
    size = draw(st.integers(min_size, max_size))
    weights = draw(st.lists(st.integers(1, top), min_size=size, max_size=size))
    p = draw(st.lists(st.integers(0, top), min_size=size, max_size=size).filter(any))
    return law_of(*p), law_of(*weights)


@st.composite
def skewed_pairs(draw: st.DrawFn, max_size: int = 3) -> Any:
    """Pairs in which the draft is far surer than the target: where readings of the theory break."""
    size = draw(st.integers(2, max_size))
    p = draw(st.lists(st.integers(0, 60), min_size=size, max_size=size).filter(any))
    q = draw(st.lists(st.sampled_from([1, 1, 2, 600, 400, 10_000]), min_size=size, max_size=size))
    return law_of(*p), law_of(*q)


@st.composite
def lists(draw: st.DrawFn, max_size: int = 4, drafts: int = 3) -> Any:
    """Triples (P, Q, m): a pair of Fractions, zeros included, and a number of drafts."""
    p, q = draw(rational_pairs(1, max_size))
    return p, q, draw(st.integers(1, drafts))


@st.composite
def rank_laws(draw: st.DrawFn, max_size: int = 4) -> Any:
    """Rank laws (n,) of Fractions: any law can be given, certain ones and zeros included."""
    return draw(st.one_of(rational_laws(max_size=max_size), st.just(law_of(0, 1)), st.just(law_of(1))))


@st.composite
def budgets(draw: st.DrawFn, max_size: int = 4, top: int = 12) -> Any:
    """Pairs (rank law, k)."""
    return draw(rank_laws(max_size)), draw(st.integers(0, top))


@st.composite
def path_laws(draw: st.DrawFn, max_size: int = 4, top: int = 10) -> Any:
    """(rank laws (c, V), k): the law after a path of ranks is the row sum(path) mod c, so contexts vary along a path."""
    size, count = draw(st.integers(1, max_size)), draw(st.integers(1, 4))
    return np.array([draw(rational_laws(size)) for _ in range(count)]), draw(st.integers(0, top))


@st.composite
def calibrated(draw: st.DrawFn, max_size: int = 3) -> Any:
    """(targets (n, V), weights (n,)): contexts that one draft law, their weighted mean, stands for."""
    size, count = draw(st.integers(2, max_size)), draw(st.integers(1, 3))
    return np.array([draw(rational_laws(size)) for _ in range(count)]), draw(rational_laws(count))
