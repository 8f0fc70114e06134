"""Checks of ASD's pathwise claims (A1 to A7): the rule itself, run through `verify_scores` or the exact engine, is the judge."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..arrays import argmax, log0, one_hot
from ..exact import sequence_law
from ..models.tabular import Tabular
from ..montecarlo import simulate_sequences
from ..pmf import total_variation
from ..testing import (
    RegretRequest,
    regret_blocks,
    regret_budgets,
    regret_requests,
    run_regret_request,
    tabular_pairs,
)
from ..theory import asd
from ..verifiers.regret_budget import SLACK, VARIANTS, RegretBudget
from .checks import check

INFINITE = math.inf


class SignedLedger(RegretBudget):
    """The repair of A1.signed: what is left may go below 0, so that an overspend is remembered."""

    def settle(self, remaining: Any, charge: Any, rejected: Any) -> Any:
        return remaining - charge


def _spent(i: RegretRequest) -> Any:
    return run_regret_request(i.rule, i.blocks)[1].spent


def _tight_blocks(budget: Any, blocks: int) -> Any:
    """B + 1e-9, then 1e-9 a block: what the published tolerance lets through. K = 1."""
    return [((False,), (budget + SLACK if b == 0 else SLACK,)) for b in range(blocks)]


_TIGHT = st.tuples(st.integers(1, 12).map(lambda n: Fraction(n, 4)), st.integers(1, 6))

check(
    "A1",
    instances=regret_requests(),
    claimed=lambda i: asd.spend_bound(i.rule, len(i.blocks)),
    second=_spent,
    mutated=lambda i: asd.spend_bound(i.rule, len(i.blocks)) / 2,
    tolerance=0,
)
check(
    "A1.slack",
    instances=_TIGHT,
    claimed=lambda i: asd.worst_spend(*i),
    second=lambda i: run_regret_request(RegretBudget(i[0], INFINITE, 1, "suffix"), _tight_blocks(*i))[1].spent,
    mutated=lambda i: asd.signed_spend_bound(i[0]),
    tolerance=0,
)
check(
    "A1.signed",
    instances=_TIGHT,
    claimed=lambda i: asd.signed_spend_bound(i[0]),
    second=lambda i: run_regret_request(SignedLedger(i[0], INFINITE, 1, "suffix"), _tight_blocks(*i))[1].spent,
    mutated=lambda i: i[0],
    tolerance=0,
)


def _ledger(i: RegretRequest) -> Any:
    return run_regret_request(i.rule, i.blocks)[1].ledger


def _size(i: RegretRequest) -> int:
    return len(i.blocks[0][0])


check(
    "A2",
    instances=regret_requests(),
    claimed=lambda i: asd.exceptions_bound(i.rule, _size(i)),
    second=lambda i: [sum(c.block == b for c in _ledger(i)) for b in range(len(i.blocks))],
    mutated=lambda i: asd.exceptions_bound(i.rule, _size(i)) - 1,
    tolerance=0,
)
check(
    "A3",
    instances=regret_requests(),
    claimed=lambda i: asd.regret_bounds(i.rule, [c.position for c in _ledger(i)], _size(i)),
    second=lambda i: [c.regret for c in _ledger(i)],
    mutated=lambda i: [b / 2 for b in asd.regret_bounds(i.rule, [c.position for c in _ledger(i)], _size(i))],
    tolerance=0,
)
check(
    "A3.block",
    instances=regret_requests(),
    claimed=lambda i: asd.regret_bound(i.rule, _size(i)),
    second=lambda i: [c.regret for c in _ledger(i)],
    mutated=lambda i: asd.regret_bound(i.rule, _size(i)) / 2,
    tolerance=0,
)


def _zeroed(i: tuple[RegretRequest, int]) -> RegretRequest:
    """The request with one control set to 0, whichever of those that force strict greedy (A4)."""
    names = ("cap", "budget", "gate") if i[0].rule.variant == "suffix" else ("cap", "budget")
    zero: dict[str, Any] = {names[i[1] % len(names)]: 0}
    return replace(i[0], rule=replace(i[0].rule, **zero))


def _accepted(i: RegretRequest) -> list[int]:
    return run_regret_request(i.rule, i.blocks)[0]


check(
    "A4",
    instances=st.tuples(regret_requests(), st.integers(0, 2)),
    claimed=lambda i: [asd.strict_length(matches) for matches, _ in i[0].blocks],
    second=lambda i: _accepted(_zeroed(i)),
    mutated=lambda i: [sum(matches) for matches, _ in i[0].blocks],
    tolerance=0,
)
# Budget, cap and a block in which ties are common.
_TIES = st.lists(st.sampled_from([0, None, 0, 1]), min_size=1, max_size=4).map(
    lambda cells: (tuple(c is None for c in cells), tuple(Fraction(c or 0) for c in cells))
)
_NO_GATE = st.tuples(st.sampled_from([1, 2, 0]), st.sampled_from([1, 2, 0]), _TIES)


def _no_gate(i: Any) -> RegretBudget:
    return RegretBudget(i[0], 0, i[1], "normalized")


check(
    "A4.tie",
    instances=_NO_GATE,
    claimed=lambda i: asd.strict_length_at_zero_gate(i[2][0]),
    second=lambda i: run_regret_request(_no_gate(i), [i[2]])[0],
    mutated=lambda i: asd.tie_length(_no_gate(i), i[2][0], i[2][1], i[0]),
    tolerance=0,
)
_BLOCK = st.tuples(regret_budgets(), regret_blocks())


def _longest(i: Any) -> int:
    return asd.longest_feasible(i[0], i[1][0], i[1][1], i[0].budget)


def _dominated(i: Any) -> int:
    return asd.dominated_length(i[0], i[1][0], i[1][1], i[0].budget)


check(
    "A5",
    instances=_BLOCK,
    claimed=_longest,
    second=lambda i: run_regret_request(i[0], [i[1]])[0],
    mutated=lambda i: asd.strict_length(i[1][0]),
    tolerance=0,
)


def _larger(i: Any) -> RegretBudget:
    """The rule with control number i[2] % 3 raised by i[3]."""
    rule, name = i[0], ("budget", "gate", "cap")[i[2]]
    larger: RegretBudget = replace(rule, **{name: getattr(rule, name) + i[3]})
    return larger


check(
    "A6",
    instances=st.tuples(regret_budgets(), regret_blocks(), st.integers(0, 2), st.integers(0, 3)),
    claimed=_dominated,
    second=lambda i: run_regret_request(_larger(i), [i[1]])[0],
    mutated=lambda i: _dominated(i) + 1,
    tolerance=0,
)
check(
    "A6.strict",
    instances=regret_requests(),
    claimed=lambda i: [asd.least_length(matches) for matches, _ in i.blocks],
    second=_accepted,
    mutated=lambda i: [asd.least_length(matches) + 1 for matches, _ in i.blocks],
    tolerance=0,
)

# A7: decode a small model with the exact arithmetic of its log-probabilities, then read the tokens again.
_RULES = st.builds(
    RegretBudget,
    st.sampled_from([0.25, 1.0, 4.0]),
    st.sampled_from([2.0, 0.5]),
    st.integers(1, 2),
    st.sampled_from(VARIANTS),
)
_DECODED = st.tuples(tabular_pairs(), _RULES, st.integers(1, 3))
# For A7.trajectory: sure, torn and clueless contexts, and drafts that may leave strict's path; several an instance.
_ROW = st.sampled_from([(0.3, 0.4, 0.3), (0.01, 0.98, 0.01), (0.98, 0.01, 0.01), (0.4, 0.3, 0.3), (0.35, 0.25, 0.4)])
_TORN = st.builds(
    lambda rows, drafts: Tabular(np.array(rows), np.eye(3)[drafts]),
    st.tuples(_ROW, _ROW, _ROW),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
)
_LOOSE = st.builds(RegretBudget, st.sampled_from([0.5, 1.0]), st.just(2.0), st.just(2), st.sampled_from(VARIANTS))
_CONTEXTUAL = st.lists(st.tuples(_TORN, _LOOSE, st.integers(1, 2)), min_size=1, max_size=8)
LENGTH = 5


def _decode(model: Tabular, rule: RegretBudget, block_size: int) -> tuple[list[int], float, int]:
    """(committed tokens, spend, calls) of one request: the whole last call, by the rule itself on `Block`s."""
    from ..protocols import Block

    tokens: list[int] = []
    state = rule.start()
    while len(tokens) < LENGTH:
        rows, drafts = [int(model.contexts(np.array([tokens], dtype=np.int64))[0])], []
        for _ in range(block_size):
            drafts.append(int(argmax(model.draft[rows[-1]])))
            rows.append(int(model.step(rows[-1], drafts[-1])))
        verdict = rule.verify(Block(np.array(drafts), model.target[rows]), state)
        tokens, state = [*tokens, *(int(x) for x in verdict.tokens)], verdict.state
    return tokens, float(state.spent), state.blocks


def _reading(model: Tabular, tokens: list[int]) -> tuple[list[float], float]:
    """Greedy log-probabilities along the tokens, and the log-probability of the tokens themselves."""
    rows = [int(model.contexts(np.array([tokens[:t]], dtype=np.int64))[0]) for t in range(len(tokens))]
    logs = log0(model.target)[rows]
    return [float(z.max()) for z in logs], math.fsum(float(z[x]) for z, x in zip(logs, tokens))


def _strict(i: Any) -> float:
    """log P of the strict greedy tokens, over as many tokens as ASD committed."""
    tokens: list[int] = []
    for _ in range(len(_decode(*i)[0])):
        row = int(i[0].contexts(np.array([tokens], dtype=np.int64))[0])
        tokens.append(int(argmax(i[0].target[row])))
    return _reading(i[0], tokens)[1]


def _envelope(i: Any) -> tuple[list[float], float, int]:
    tokens, spent, calls = _decode(*i)
    return _reading(i[0], tokens)[0], spent, calls


def _realised(i: Any) -> float:
    return _reading(i[0], _decode(*i)[0])[1]


def _bound(i: Any) -> float:
    tops, _, calls = _envelope(i)
    return asd.log_likelihood_bound(i[1], tops, calls)


check(
    "A7",
    instances=_DECODED,
    claimed=lambda i: asd.log_likelihood(*_envelope(i)[:2]),
    second=_realised,
    mutated=lambda i: asd.log_likelihood(_envelope(i)[0], 0.0),
)
check(
    "A7.bound",
    instances=_DECODED,
    claimed=_bound,
    second=_realised,
    mutated=lambda i: _bound(i) + float(i[1].budget),
)
check(
    "A7.perplexity",
    instances=_DECODED,
    claimed=lambda i: asd.perplexity_bound(i[1], _envelope(i)[0], _envelope(i)[2]),
    second=lambda i: math.exp(-_realised(i) / len(_decode(*i)[0])),
    mutated=lambda i: math.exp(-math.fsum(_envelope(i)[0]) / len(_envelope(i)[0])),
)
check(
    "A7.trajectory",
    instances=_CONTEXTUAL,
    claimed=lambda cases: [asd.trajectory_bound(i[1], _strict(i)) for i in cases],
    second=lambda cases: [_realised(i) for i in cases],
    mutated=lambda cases: [_bound(i) for i in cases],
)


def _points(i: Any) -> tuple[list[int], list[int]]:
    """First tokens of ASD (by the vectorised simulator) and of strict greedy."""
    out = []
    for rule in (i[1], replace(i[1], cap=0)):
        sample = simulate_sequences(rule, i[0], requests=1, length=LENGTH - 1, block_size=i[2])
        out.append([int(x) for x in sample.tokens[0]])
    return out[0], out[1]


def _exact_tv(i: Any) -> float:
    model = replace(i[0], draft=one_hot(argmax(i[0].draft), i[0].draft))
    both = [
        sequence_law(rule, model, length=LENGTH - 1, block_size=i[2]).ravel() for rule in (i[1], replace(i[1], cap=0))
    ]
    return float(total_variation(*both))


check(
    "A7.tv",
    instances=_DECODED,
    claimed=lambda i: asd.deterministic_tv(*_points(i)),
    second=_exact_tv,
    mutated=lambda i: np.mean([a != b for a, b in zip(*_points(i))]),
)
