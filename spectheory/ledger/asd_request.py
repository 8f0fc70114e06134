"""Checks of ASD's claims over whole requests (A6 on traces, A8, A9, A10) against the rule, the exact chain, the knapsack."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from ..exact import regret
from ..exact.offline import offline_optimum
from ..testing import compact_scores, regret_blocks, regret_budgets, regret_positions, regret_traces, run_regret_request
from ..theory import asd_request as asd
from ..verifiers.regret_budget import RegretBudget
from .checks import check


def _decode_trace(rule: RegretBudget, matches: Any, regrets: Any, block_size: int) -> tuple[int, int]:
    """(calls, accepted mismatches) of the rule on a fixed trace, through `verify_scores`."""
    state, at = rule.start(), 0
    while at < len(matches):
        block = slice(at, at + block_size)
        verdict = rule.verify_scores(*compact_scores(matches[block], regrets[block]), state)
        state, at = verdict.state, at + verdict.accepted + 1
    return state.blocks, len(state.ledger)


def _strict(rule: RegretBudget) -> RegretBudget:
    return replace(rule, cap=0)


_TRACE = st.tuples(regret_budgets(positive=True), regret_traces())


# A larger control hurts on a few in a hundred of these short traces at K = 2: an instance is a handful, and shrinks to one.
# That no shorter trace does it is shown by exhaustion in tests/test_regret.py.
def _traces(length: int, *cells: int | None) -> st.SearchStrategy[Any]:
    cell = st.lists(st.sampled_from(cells), min_size=length, max_size=length)
    return cell.map(lambda x: (tuple(c is None for c in x), tuple(Fraction(c or 0) for c in x), 2))


def _cases(rule: st.SearchStrategy[RegretBudget], trace: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(rule, trace), min_size=1, max_size=24)


_TWO = st.builds(RegretBudget, st.sampled_from([2, 3]), st.sampled_from([1, Fraction(3, 2)]), st.just(2))
_THREE = st.builds(RegretBudget, st.just(3), st.just(1), st.just(2))
_ONE = st.builds(RegretBudget, st.sampled_from([2, 3]), st.just(1), st.just(1))
_Claim = Callable[[Any, Any, Any, int], int]


def _check_raised(control: str, by: Any, claimed: _Claim, instances: st.SearchStrategy[Any]) -> None:
    """Declare the check of one false claim of A6: raise `control` by `by` and count calls on each trace."""

    def raised(rule: RegretBudget) -> RegretBudget:
        return replace(rule, **{control: getattr(rule, control) + by})

    check(
        f"A6.{control}",
        instances=instances,
        claimed=lambda i: [claimed(rule, *trace) for rule, trace in i],
        second=lambda i: [_decode_trace(raised(rule), *trace)[0] for rule, trace in i],
        mutated=lambda i: [asd.strict_calls(trace[0], trace[2]) for _, trace in i],
        tolerance=0,
    )


_check_raised("budget", 1, asd.calls_at_smaller_budget, _cases(_TWO, _traces(4, None, 1, 3)))
_check_raised("gate", Fraction(1, 2), asd.calls_at_smaller_gate, _cases(_THREE, _traces(4, None, 1, 3)))
_check_raised("cap", 1, asd.calls_at_smaller_cap, _cases(_ONE, _traces(5, None, 1)))

check(
    "A8",
    instances=_TRACE,
    claimed=lambda i: asd.calls_saved_bound(asd.calls(i[0], *i[1])[1]),
    second=lambda i: _decode_trace(_strict(i[0]), *i[1])[0] - _decode_trace(i[0], *i[1])[0],
    mutated=lambda i: asd.calls_saved_bound(asd.calls(i[0], *i[1])[1]) - 1,
    tolerance=0,
)
check(
    "A8.gain",
    instances=_TRACE,
    claimed=lambda i: asd.gain_bound(asd.calls(i[0], *i[1])[1], asd.calls(i[0], *i[1])[0]),
    second=lambda i: Fraction(_decode_trace(_strict(i[0]), *i[1])[0], _decode_trace(i[0], *i[1])[0]) - 1,
    mutated=lambda i: asd.gain_bound(asd.calls(i[0], *i[1])[1], 2 * asd.calls(i[0], *i[1])[0]),
    tolerance=0,
)


def _mismatches(i: Any) -> list[Any]:
    matches, regrets, _ = i[1]
    return [r for match, r in zip(matches, regrets) if not match]


check(
    "A8.count",
    instances=_TRACE,
    claimed=lambda i: asd.exceptions_in_request(i[0], _mismatches(i), i[1][2], asd.calls(i[0], *i[1])[0]),
    second=lambda i: _decode_trace(i[0], *i[1])[1],
    mutated=lambda i: asd.exceptions_in_request(i[0], _mismatches(i), i[1][2], asd.calls(i[0], *i[1])[0]) - 1,
    tolerance=0,
)

_IID = st.tuples(regret_budgets(positive=True), regret_positions()).filter(lambda i: regret.block_moments(*i)[0] > 0)
_IID_SUFFIX = st.tuples(regret_budgets("suffix", positive=True), regret_positions())


def _blocks(i: Any) -> float:
    return regret.expected_blocks(*i).upper


check(
    "A9",
    instances=_IID,
    claimed=lambda i: asd.exhaustion_upper(i[0], *regret.block_moments(*i)),
    second=_blocks,
    mutated=lambda i: asd.exhaustion_lower(i[0], regret.block_moments(*i)[0]),
)
check(
    "A9.lower",
    instances=_IID,
    claimed=lambda i: asd.exhaustion_lower(i[0], regret.block_moments(*i)[0]),
    second=_blocks,
    mutated=lambda i: asd.exhaustion_upper(i[0], *regret.block_moments(*i)),
)
check(
    "A9.permanent",
    instances=_IID,
    claimed=lambda i: asd.permanent_exhaustion_bound(i[0], *regret.block_moments(*i)),
    second=lambda i: regret.expected_exhaustion(*i).upper,
    mutated=lambda i: asd.permanent_exhaustion_upper(*i),
)


def _charges(i: Any) -> dict[Any, Any]:
    """Law of the unconstrained block charge, by adding up the joint law of an infinite budget."""
    out: dict[Any, Any] = {}
    for (_, charge), mass in regret.block_law(replace(i[0], budget=math.inf), i[1]).items():
        out[charge] = out.get(charge, 0) + mass
    return out


check(
    "A9.survival",
    instances=_IID_SUFFIX,
    claimed=lambda i: asd.survival(_charges(i), i[0].budget, 3),
    second=lambda i: regret.request(i[0], i[1], blocks=3).survival[3],
    mutated=lambda i: asd.survival(_charges(i), i[0].budget, 4),
)

check(
    "A10",
    instances=st.tuples(regret_budgets(), st.lists(regret_blocks(2), min_size=1, max_size=4)),
    claimed=lambda i: asd.best_plan(*i),
    second=lambda i: offline_optimum(*i).accepted,
    mutated=lambda i: sum(run_regret_request(_strict(i[0]), i[1])[0]),
    tolerance=0,
)


def _punished(size: int) -> list[Any]:
    """Two blocks built to punish greed: 1 nat for one token first, 1 nat for the whole second block."""
    first = (False,) * size, (Fraction(1), *(math.inf,) * (size - 1))
    return [first, ((False, *(True,) * (size - 1)), (Fraction(1), *(Fraction(0),) * (size - 1)))]


def _ratio(size: int) -> Fraction:
    rule = RegretBudget(1, 1, 1, "suffix")
    blocks = _punished(size)
    return Fraction(sum(run_regret_request(rule, blocks)[0]), offline_optimum(rule, blocks).accepted)


check(
    "A10.ratio",
    instances=st.integers(1, 12),
    claimed=asd.myopia_ratio,
    second=_ratio,
    mutated=lambda size: max(asd.myopia_ratio(size), Fraction(1, 4)),
    tolerance=0,
)
