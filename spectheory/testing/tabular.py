"""Hypothesis strategies for tabular models and engines: what the sequence theorems quantify over, by construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..arrays import Array
from ..models import Tabular
from ..verifiers import Nucleus, Standard
from ..verifiers.token import TokenRule
from .strategies import rational_laws, top_ps


@dataclass(frozen=True)
class TableRule(TokenRule):
    """An arbitrary token rule, given by context: `accept` (S, V) in [0, 1] and `correct` (S, V) laws, for whole tables only."""

    accept: Array
    correct: Array

    def acceptance(self, p: Array, q: Array) -> Array:
        return self.accept

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        return self.correct


@st.composite
def tabulars(draw: st.DrawFn, max_vocab: int = 3, max_order: int = 1) -> Any:
    """Tabular models in Fractions, orders 0 to `max_order`; rows with zeros, equal rows and one-hot rows occur."""
    size, order = draw(st.integers(1, max_vocab)), draw(st.integers(0, max_order))
    rows = size**order
    target = [draw(rational_laws(size)) for _ in range(rows)]
    draft = [draw(st.one_of(rational_laws(size), st.just(t))) for t in target]
    return Tabular(np.stack(target), np.stack(draft), draw(st.integers(0, rows - 1)))


@st.composite
def table_rules(draw: st.DrawFn, model: Tabular) -> Any:
    """Arbitrary token rules for a model's table, in Fractions."""
    rows, size = model.target.shape
    chance = st.one_of(st.sampled_from([0, 1]), st.fractions(0, 1, max_denominator=12))
    accept = np.array([[draw(chance) for _ in range(size)] for _ in range(rows)], dtype=object)
    return TableRule(accept, np.stack([draw(rational_laws(size)) for _ in range(rows)]))


@st.composite
def engines(draw: st.DrawFn, max_length: int = 4, no_bonus: bool = False) -> Any:
    """(verifier, model, length, block_size): the standard rule, NSD or an arbitrary rule; `no_bonus` keeps K >= T."""
    model = draw(tabulars())
    rule = draw(st.one_of(st.builds(Nucleus, top_ps()), st.just(Standard()), table_rules(model)))
    length = draw(st.integers(1, max_length))
    return rule, model, length, draw(st.integers(length if no_bonus else 1, max_length + 1))
