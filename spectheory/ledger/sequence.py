"""Checks of the sequence theorems against the exact engine, which enumerates every sequence."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .. import exact
from ..models import Tabular
from ..pmf import kl, total_variation
from ..testing import pairs, rational_pairs
from ..testing.tabular import TableRule, engines
from ..theory import composition, joint, lower, sequence
from ..theory.chain import Chain, chain
from ..verifiers import Standard
from .checks import check


def the_chain(i: Any) -> Chain:
    verifier, model, length, block_size = i
    return chain(verifier, model, length=length, block_size=block_size)


def _deviation(i: Any) -> float:
    verifier, model, length, block_size = i
    return float(exact.sequence_deviation(verifier, model, length=length, block_size=block_size))


def _law(i: Any) -> Any:
    verifier, model, length, block_size = i
    return exact.sequence_law(verifier, model, length=length, block_size=block_size).astype(float).ravel()


def _every(i: Any, probability: Any) -> Any:
    """A probability of one sequence, for all of them in order."""
    c, size = the_chain(i), i[1].vocab_size
    return [probability(c, x) for x in np.ndindex(*(size,) * i[2])]


def _one_call(i: Any) -> Any:
    """The same engine without bonus steps: what forgets the bonus claims."""
    return i[0], i[1], i[2], max(i[2], i[3])


def _first_loss(c: Chain) -> float:
    """The first step's deviation alone."""
    return float(np.atleast_1d(total_variation(c.out, c.p))[c.initial])


check(
    "Q1",
    instances=engines(3),
    claimed=lambda i: _every(i, sequence.sequence_probability),
    second=_law,
    mutated=lambda i: _every(_one_call(i), sequence.sequence_probability),
)
check(
    "Q1.standard",
    instances=engines(3).map(lambda i: (Standard(), *i[1:])),
    claimed=lambda i: _every(i, sequence.standard_probability),
    second=_law,
    mutated=lambda i: _every(
        (i[0], Tabular(i[1].draft, i[1].target, i[1].initial), *i[2:]), sequence.standard_probability
    ),
)


def _check_upper(claim: str, bound: Callable[[Chain], float]) -> None:
    check(
        claim,
        instances=engines(),
        claimed=lambda i: bound(the_chain(i)),
        second=_deviation,
        mutated=lambda i: _first_loss(the_chain(i)),
    )


def _check_lower(claim: str, bound: Callable[[Chain], float]) -> None:
    check(
        claim,
        instances=engines(),
        claimed=lambda i: bound(the_chain(i)),
        second=_deviation,
        mutated=lambda i: math.sqrt(bound(the_chain(i))),
    )


_check_upper("Q2", sequence.coupling)
_check_upper("Q3", sequence.union)
_check_upper("Q3.target", sequence.union_target)
_check_upper("Q4", sequence.uniform)
_check_upper("Q6", sequence.hellinger)
_check_upper("Q7.joint", lambda c: joint.joint_tv(c).upper)
check(
    "Q5",
    instances=engines(),
    claimed=lambda i: sequence.kl_chain(the_chain(i)),
    second=lambda i: exact.sequence_kl(i[0], i[1], length=i[2], block_size=i[3])[1],
    mutated=lambda i: sequence.kl_chain(the_chain((*i[:2], max(1, i[2] - 1), i[3]))),
)
check(
    "Q5.reverse",
    instances=engines(),
    claimed=lambda i: sequence.kl_chain_reverse(the_chain(i)),
    second=lambda i: exact.sequence_kl(i[0], i[1], length=i[2], block_size=i[3])[0],
    mutated=lambda i: sequence.kl_chain_reverse(the_chain((*i[:2], max(1, i[2] - 1), i[3]))),
)
check(
    "Q5.pinsker",
    instances=pairs(),
    claimed=lambda i: sequence.pinsker(kl(*i)),
    second=lambda i: total_variation(*i),
    mutated=lambda i: sequence.pinsker(kl(*i) / 4),
)
check(
    "Q5.bretagnolle_huber",
    instances=pairs(),
    claimed=lambda i: sequence.bretagnolle_huber(kl(*i)),
    second=lambda i: total_variation(*i),
    mutated=lambda i: -math.expm1(-kl(*i)),
)
check(
    "Q6.lower",
    instances=engines(no_bonus=True),
    claimed=lambda i: sequence.hellinger_lower(the_chain(i)),
    second=_deviation,
    mutated=lambda i: sequence.hellinger(the_chain(i)),
)

# The witness of theory: with bonus steps the joint law of (tokens, j) can be further from the target than the tokens.
BONUS_WITNESS = (
    TableRule(
        np.array([[F(878, 4799), F(26, 9221)]], dtype=object), np.array([[F(7966, 7983), F(17, 7983)]], dtype=object)
    ),
    Tabular(
        np.array([[F(1, 3113), F(3112, 3113)]], dtype=object), np.array([[F(8245, 8249), F(4, 8249)]], dtype=object)
    ),
    3,
    1,
)
check(
    "Q6.lower_any_k",
    instances=st.one_of(st.just(BONUS_WITNESS), engines(3)),
    claimed=lambda i: sequence.hellinger_lower_any_k(the_chain(i)),
    second=_deviation,
    mutated=lambda i: sequence.hellinger_lower(the_chain(i)) if i[3] >= i[2] else 0.0,
)
_check_lower("Q8", lower.marginal)
_check_lower("Q8.count", lower.count)
_check_lower("Q8.moments", lower.moments)


def _product_deviation(i: Any) -> float:
    """TV of the T-fold product of a pair: the engine that accepts every draft from p~ in one block."""
    p_tilde, p, length = i
    rule = TableRule(0 * p[None] + 1, p[None])
    return _deviation((rule, Tabular(p[None], p_tilde[None]), length, length))


_products = st.tuples(rational_pairs(1, 3), st.integers(1, 5)).map(lambda i: (*i[0], i[1]))
check(
    "Q7",
    instances=_products,
    claimed=lambda i: composition.sequence_tv(i[0], i[1], length=i[2]).estimate,
    second=_product_deviation,
    mutated=lambda i: sequence.uniform_bound(float(total_variation(i[0], i[1])), i[2]),
    tolerance=1e-6,
)
check(
    "Q7.dominated",
    instances=engines(),
    claimed=lambda i: (lambda c: composition.adaptive_tv(c.out, c.p, length=i[2]))(the_chain(i)),
    second=_deviation,
    mutated=lambda i: (lambda c: composition.adaptive_tv(c.out[:1], c.p[:1], length=i[2]))(the_chain(i)),
)

PARTIAL_WITNESS = (
    (np.array([F(1), F(0)]), np.array([F(2, 3), F(1, 3)])),
    (np.array([F(2, 3), F(1, 3)]), np.array([F(1, 3), F(2, 3)])),
    2,
)


def _partly_dominated(i: Any) -> bool:
    return composition.dominates(i[1][0], i[1][1], i[0][0], i[0][1], least=1)


_dominated: st.SearchStrategy[Any] = st.tuples(rational_pairs(2, 2), rational_pairs(2, 2), st.integers(1, 3))
check(
    "Q7.partial",
    instances=st.one_of(st.just(PARTIAL_WITNESS), _dominated.filter(_partly_dominated)),
    claimed=lambda i: composition.partially_dominated_tv(*i[1], length=i[2]),
    second=lambda i: _product_deviation((*i[0], i[2])),
    mutated=lambda i: composition.adaptive_tv(*(np.stack([x, y]) for x, y in zip(i[0], i[1])), length=i[2]),
    tolerance=1e-6,
)
check(
    "Q9",
    instances=rational_pairs(),
    claimed=lambda i: sequence.overshoot(*i),
    second=lambda i: total_variation(*i),
    mutated=lambda i: sequence.half_absolute(*i),
    tolerance=0,
)
check(
    "Q9.absolute",
    instances=rational_pairs(),
    claimed=lambda i: sequence.half_absolute(*i),
    second=lambda i: total_variation(*i),
    mutated=lambda i: sequence.overshoot(*i),
    tolerance=0,
)
