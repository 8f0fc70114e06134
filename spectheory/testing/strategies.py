"""Hypothesis strategies whose values satisfy a theorem's hypotheses by construction and shrink to readable instances."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..protocols import Block

# Small whole weights shrink to readable laws; zeros and repeats (ties) are common on purpose.
_WEIGHTS = st.one_of(st.integers(0, 10), st.sampled_from([0, 0, 1, 1, 2, 3, 50, 1000]))


def law_of(*weights: Any) -> Any:
    """The law (V,) of Fractions proportional to whole or rational weights."""
    masses = [Fraction(w) for w in weights]
    return np.array([m / sum(masses) for m in masses], dtype=object)


@st.composite
def rational_laws(draw: st.DrawFn, vocab_size: int | None = None, min_size: int = 1, max_size: int = 6) -> Any:
    """Laws (V,) of Fractions, zeros and ties included."""
    size = vocab_size or draw(st.integers(min_size, max_size))
    weights = draw(st.lists(_WEIGHTS, min_size=size, max_size=size).filter(any))
    return law_of(*weights)


@st.composite
def laws(draw: st.DrawFn, vocab_size: int | None = None, min_size: int = 1, max_size: int = 6) -> Any:
    """Laws (V,) in float64: the rational ones rounded, so zeros and exact ties are common."""
    return draw(rational_laws(vocab_size, min_size, max_size)).astype(np.float64)


@st.composite
def rational_pairs(draw: st.DrawFn, min_size: int = 1, max_size: int = 6) -> Any:
    """Pairs (p, q) of Fractions over one vocabulary; equal, disjoint and one-hot pairs are common.

    Drawn token by token, so that a failing pair shrinks by losing the tokens that do not matter.
    """
    tokens = st.lists(st.tuples(_WEIGHTS, _WEIGHTS), min_size=min_size, max_size=max_size)
    p, q = map(list, zip(*draw(tokens.filter(lambda w: any(a for a, _ in w) and any(b for _, b in w)))))
    kind = draw(st.integers(0, 9))
    if kind >= 8:
        q = p
    elif kind == 7:  # each token on the side that has more of it
        apart = [a if a > b else 0 for a, b in zip(p, q)], [b if b >= a else 0 for a, b in zip(p, q)]
        p, q = apart if all(map(any, apart)) else (p, q)
    return law_of(*p), law_of(*q)


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


@st.composite
def blocks(draw: st.DrawFn, max_vocab: int = 4, max_size: int = 4) -> Any:
    """`Block`s in float64: target laws (K + 1, V), draft laws (K, V), and drafted tokens that their draft laws can draw."""
    vocab, size = draw(st.integers(1, max_vocab)), draw(st.integers(1, max_size))
    rows = [draw(rational_pairs(vocab, vocab)) for _ in range(size)]
    tokens = [draw(st.sampled_from(np.flatnonzero(q > 0).tolist())) for _, q in rows]
    p = np.stack([*(p for p, _ in rows), draw(rational_laws(vocab))]).astype(np.float64)
    return Block(np.array(tokens), p, np.stack([q for _, q in rows]).astype(np.float64))
