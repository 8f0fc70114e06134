"""A7 for all logits of up to four tokens: the regret is the gap of log-likelihoods, and what follows for sequences.

A case fixes, row by row, where the maximum is and which token is committed: z_v = z_max - d_v with d_v >= 0. Only tokens
other than the maximum are charged. The budget enters as B = spent + left with left >= 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .symbolic import Refused

SIZES = (1, 2, 3, 4)
LENGTHS = (1, 2, 3)


@dataclass(frozen=True)
class Row:
    """One position: logits (V,), where their maximum is, the committed token."""

    logits: tuple[Any, ...]
    top: int
    token: int

    def log_p(self, token: int) -> Any:
        import sympy

        law = sympy.exp(self.logits[token]) / sum(sympy.exp(z) for z in self.logits)
        return sympy.expand_log(sympy.log(law), force=True)  # exponentials and their sums are positive


Charge = Callable[[Row], Any]
Claim = Callable[[Any, Any, int], Any]


def regret(row: Row) -> Any:
    """The claim A7: max z - z_x, charged where x is not the maximum."""
    return row.logits[row.top] - row.logits[row.token] if row.token != row.top else 0


def A7(formula: Charge = regret, sizes: tuple[int, ...] = SIZES, lengths: tuple[int, ...] = LENGTHS) -> Iterator[str]:
    """One position of up to four tokens, then sequences of rows of two."""
    yield "A7: log P(x_1..T) = sum_t log max p_t - (regret spent), temperature 1, for all logits"
    for size in sizes:
        for row in _rows(size, ""):
            case = f"V = {size}, maximum {row.top}, token {row.token}"
            for v in range(size):  # the maximum of the logits is that of the law
                _nonnegative(row.log_p(row.top) - row.log_p(v), f"{case}: log p({row.top}) - log p({v})")
            _zero(row.log_p(row.token) - (row.log_p(row.top) - formula(row)), case)
        yield f"  V = {size}: {size**2} pairs (maximum, token), an identity in each"
    for length in lengths:
        for likelihood, envelope, spent, case in _sequences(length, formula):
            _zero(likelihood - (envelope - spent), case)
        yield f"  V = 2, T = {length}: {4**length} sequences of such pairs, an identity in each"
    yield f"  A7 is proved for one row of V in {_set(sizes)}, for T in {_set(lengths)} at V = 2. QED"


def A7_bound(bound: Claim = lambda envelope, budget, length: envelope - budget) -> Iterator[str]:
    """A spend of at most B keeps the likelihood within B of the realised greedy envelope."""
    yield "A7.bound: log P(x_1..T) >= sum_t log max p_t - B whenever the rule spends at most B"
    for length in LENGTHS:
        for likelihood, envelope, budget, case in _with_budget(length):
            _nonnegative(likelihood - bound(envelope, budget, length), case)
        yield f"  T = {length}: {4**length} cases at V = 2, the difference is the budget left in each"
    yield f"  A7.bound is proved for T in {_set(LENGTHS)}. QED"


def A7_perplexity(bound: Claim = lambda envelope, budget, length: (budget - envelope) / length) -> Iterator[str]:
    """The log-perplexity -log P / T exceeds the envelope's by at most B / T."""
    yield "A7.perplexity: perplexity <= exp(B / T) times that of the realised greedy envelope"
    for length in LENGTHS:
        for likelihood, envelope, budget, case in _with_budget(length):
            _nonnegative(bound(envelope, budget, length) + likelihood / length, case)
        yield f"  T = {length}: {4**length} cases at V = 2, the logarithms differ by (budget left) / {length} in each"
    yield f"  A7.perplexity is proved for T in {_set(LENGTHS)}. QED"


def _rows(size: int, suffix: str) -> Iterator[Row]:
    """Every place of the maximum with every token, for all logits of `size` tokens."""
    import sympy

    maximum = sympy.Symbol(f"z{suffix}", real=True)
    for top, token in itertools.product(range(size), repeat=2):
        below = [sympy.Symbol(f"d{v}{suffix}", nonnegative=True) for v in range(size)]
        logits = tuple(maximum - (0 if v == top else d) for v, d in enumerate(below))
        yield Row(logits, top, token)


def _sequences(length: int, charge: Charge = regret) -> Iterator[tuple[Any, Any, Any, str]]:
    """(log P(x_1..T), sum log max p, sum of charges, case) of every sequence of rows of two tokens."""
    for rows in itertools.product(*(list(_rows(2, f"_{t + 1}")) for t in range(length))):
        likelihood = sum(row.log_p(row.token) for row in rows)
        envelope = sum(row.log_p(row.top) for row in rows)
        case = f"V = 2, T = {length}, (maximum, token) " + ", ".join(f"({r.top}, {r.token})" for r in rows)
        yield likelihood, envelope, sum(charge(row) for row in rows), case


def _with_budget(length: int) -> Iterator[tuple[Any, Any, Any, str]]:
    """The same with any budget that covers the spend."""
    import sympy

    left = sympy.Symbol("left", nonnegative=True)
    for likelihood, envelope, spent, case in _sequences(length):
        yield likelihood, envelope, spent + left, case


def _zero(difference: Any, case: str) -> None:
    import sympy

    rest = sympy.expand(difference)
    if rest != 0:
        raise Refused(f"{case}: the two sides differ by {rest}")


def _nonnegative(value: Any, case: str) -> None:
    import sympy

    rest = sympy.expand(value)
    if not rest.is_nonnegative:
        raise Refused(f"{case}: cannot certify {rest} >= 0")


def _set(values: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
