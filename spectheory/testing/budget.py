"""Strategies for regret budgets: rules, blocks, requests, traces, i.i.d. positions and small models to decode.

Regrets and controls are quarters on a small grid, Fractions unless said otherwise: every sum and comparison is exact,
boundary cases (regret = gate value, charge = budget, zero-regret ties) are common, and instances shrink to readable ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..models.positions import Positions
from ..models.tabular import Tabular
from ..protocols import Block
from ..verifiers.regret_budget import VARIANTS, RegretBudget, RequestState
from .strategies import rational_laws

_QUARTERS = st.integers(0, 12).map(lambda n: Fraction(n, 4))
# Block sizes whose suffix values (K - i) / K are exact in floats too: an infinite regret turns a block's numbers into floats.
EXACT_SIZES = (1, 2, 4)
_CONTROLS = st.one_of(st.sampled_from([Fraction(0), Fraction(1), math.inf]), _QUARTERS)


@dataclass(frozen=True)
class RegretRequest:
    """A rule and the blocks [(matches (K,), regrets (K,))] that a request meets."""

    rule: RegretBudget
    blocks: tuple[tuple[tuple[bool, ...], tuple[Any, ...]], ...]


@st.composite
def regret_budgets(
    draw: st.DrawFn, variant: str | None = None, rule: Any = RegretBudget, positive: bool = False
) -> Any:
    """Rules of either variant; zero and infinite controls occur unless `positive` (then 0 < B < inf, g > 0, m >= 1)."""
    controls = st.integers(1, 12).map(lambda n: Fraction(n, 4)) if positive else _CONTROLS
    cap = st.integers(1, 3) if positive else st.one_of(st.integers(0, 3), st.just(math.inf))
    name = variant or draw(st.sampled_from(VARIANTS))
    return rule(draw(controls), draw(controls), draw(cap), name)


@st.composite
def regret_blocks(draw: st.DrawFn, size: int | None = None, infinite: bool = True) -> Any:
    """Blocks (matches (K,), regrets (K,)) of any drafts; a match has regret 0, a mismatch any, `infinite` too."""
    size = size or draw(st.sampled_from(EXACT_SIZES))
    regret = st.one_of(_QUARTERS, st.just(math.inf)) if infinite else _QUARTERS
    cells = draw(st.lists(st.one_of(st.none(), regret), min_size=size, max_size=size))
    return tuple(c is None for c in cells), tuple(Fraction(0) if c is None else c for c in cells)


@st.composite
def regret_requests(draw: st.DrawFn, variant: str | None = None, rule: Any = RegretBudget, max_blocks: int = 5) -> Any:
    """Requests: a rule and up to `max_blocks` blocks of one size."""
    chosen = draw(regret_budgets(variant, rule))
    size = draw(st.sampled_from(EXACT_SIZES))
    return RegretRequest(chosen, tuple(draw(st.lists(regret_blocks(size), min_size=1, max_size=max_blocks))))


@st.composite
def regret_traces(draw: st.DrawFn, min_length: int = 1, max_length: int = 10) -> Any:
    """(matches (T,), regrets (T,), K): a fixed trace of whole regrets, and a block size."""
    cells = draw(st.lists(st.sampled_from([None, 1, 1, 3, 2]), min_size=min_length, max_size=max_length))
    matches, regrets = tuple(c is None for c in cells), tuple(Fraction(c or 0) for c in cells)
    return matches, regrets, draw(st.integers(1, 3))


@st.composite
def regret_positions(draw: st.DrawFn, max_block: int = 4) -> Any:
    """i.i.d. positions with rational probabilities and quarter regrets, ties (regret 0) and inf included."""
    values = draw(st.lists(st.one_of(_QUARTERS, st.just(math.inf)), min_size=1, max_size=3, unique=True))
    law = draw(rational_laws(len(values)))
    match = draw(st.fractions(0, 1, max_denominator=6))
    return Positions(match, dict(zip(values, law)), draw(st.integers(1, max_block)))


@st.composite
def greedy_blocks(draw: st.DrawFn, max_vocab: int = 4, max_size: int = 4) -> Any:
    """`Block`s of whole float logits, so that exact ties for the maximum are common; -inf occurs, an all -inf row does not."""
    vocab, size = draw(st.integers(1, max_vocab)), draw(st.integers(1, max_size))
    row = st.lists(st.sampled_from([-math.inf, 0.0, 0.0, 1.0, 1.0, 2.0]), min_size=vocab, max_size=vocab)
    rows = draw(st.lists(row.filter(lambda z: max(z) > -math.inf), min_size=size + 1, max_size=size + 1))
    tokens = draw(st.lists(st.integers(0, vocab - 1), min_size=size, max_size=size))
    return Block(np.array(tokens), logits=np.array(rows))


@st.composite
def tabular_pairs(draw: st.DrawFn, max_vocab: int = 3, min_order: int = 0, max_order: int = 1) -> Any:
    """Small `Tabular` models in float64 whose target rows have full support, peaked and flat ones; drafts are any laws."""
    vocab, order = draw(st.integers(2, max_vocab)), draw(st.integers(min_order, max_order))
    weights = st.lists(st.sampled_from([1, 1, 2, 3, 4, 12, 100]), min_size=vocab, max_size=vocab)
    target = [
        [w / sum(row) for w in row] for row in draw(st.lists(weights, min_size=vocab**order, max_size=vocab**order))
    ]
    draft = [draw(rational_laws(vocab)).astype(np.float64) for _ in range(vocab**order)]
    return Tabular(np.array(target), np.array(draft))


def compact_scores(matches: Any, regrets: Any) -> tuple[Any, Any, Any, Any]:
    """A block (matches, regrets) as arguments of `verify_scores`: maxima 0, argmax ids 0, drafted logits -r, tokens."""
    drafted = [-r for r in regrets]
    exact = all(isinstance(r, Fraction | int) for r in regrets)
    tops = np.array([Fraction(0)] * (len(regrets) + 1), dtype=object if exact else np.float64)
    ids = np.zeros(len(regrets) + 1, dtype=np.int64)
    tokens = np.array([0 if match else 1 for match in matches], dtype=np.int64)
    return tops, ids, np.array(drafted, dtype=object if exact else np.float64), tokens


def run_regret_request(rule: RegretBudget, blocks: Any) -> tuple[list[int], RequestState]:
    """Accepted length of each block, and the state after the last, through `verify_scores`."""
    state, accepted = rule.start(), []
    for matches, regrets in blocks:
        verdict = rule.verify_scores(*compact_scores(matches, regrets), state)
        state = verdict.state
        accepted.append(verdict.accepted)
    return accepted, state
