"""ASD over whole requests: calls saved (A6, A8), how fast the budget is used up (A9), what hindsight would buy (A10).

A trace is (`matches`, `regrets`) over absolute positions, (T,) each; other conventions as in `asd`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from ..errors import UsageError
from .asd import SLACK, feasible, longest_feasible, regret_bound, slack, spend_bound, strict_length
from .registry import F, theorem


def calls(rule: Any, matches: Sequence[Any], regrets: Sequence[Any], block_size: int) -> tuple[int, int]:
    """(calls, accepted mismatches) that decode a fixed trace (T,): match and regret are functions of the position.

    Each call drafts min(K, T - t) tokens, accepts the longest feasible prefix and commits the target's token behind it.
    """
    at, used, exceptions, left = 0, 0, 0, rule.budget
    while at < len(matches):
        block = slice(at, at + block_size)
        length = longest_feasible(rule, matches[block], regrets[block], left)
        taken = [i for i in range(at, at + length) if not matches[i]]
        left = max(left - sum(regrets[i] for i in taken), 0)
        at, used, exceptions = at + length + 1, used + 1, exceptions + len(taken)
    return used, exceptions


def strict_calls(matches: Sequence[Any], block_size: int) -> int:
    """Calls of strict greedy on a fixed trace (T,)."""
    at, used = 0, 0
    while at < len(matches):
        at, used = at + strict_length(matches[at : at + block_size]) + 1, used + 1
    return used


_REQUEST = "raising a control never costs calls over a whole request: FALSE even on a fixed trace"
_ON_TRACE = "on a fixed trace ASD never needs more calls than strict greedy"


def _request_claim(control: str, example: str) -> Callable[[F], F]:
    return theorem(
        f"A6.{control}",
        source="ours",
        statement=rf"{control}' \ge {control} \Rightarrow \text{{calls}}' \le \text{{calls}}",
        relation="<=",
        hypotheses=_REQUEST,
        status="false",
        counterexample=example,
        replacement=_ON_TRACE,
    )


@_request_claim("budget", "suffix, K = m = 2, g = 3/2, regrets 3, 1, 1, match: B = 2 takes 2 calls, B = 3 takes 3")
def calls_at_smaller_budget(rule: Any, matches: Sequence[Any], regrets: Sequence[Any], block_size: int) -> int:
    """The false claim's bound: calls under the smaller budget."""
    return calls(rule, matches, regrets, block_size)[0]


@_request_claim("gate", "suffix, K = m = 2, B = 3, regrets 3, 1, 1, match: g = 1 takes 2 calls, g = 3/2 takes 3")
def calls_at_smaller_gate(rule: Any, matches: Sequence[Any], regrets: Sequence[Any], block_size: int) -> int:
    """The false claim's bound: calls under the smaller gate."""
    return calls(rule, matches, regrets, block_size)[0]


@_request_claim("cap", "suffix, K = 2, B = 2, g = 1, regrets 1, 1, match, 1, match: m = 1 takes 2 calls, m = 2 takes 3")
def calls_at_smaller_cap(rule: Any, matches: Sequence[Any], regrets: Sequence[Any], block_size: int) -> int:
    """The false claim's bound: calls under the smaller cap."""
    return calls(rule, matches, regrets, block_size)[0]


@theorem(
    "A8",
    source="ours",
    statement=r"\text{calls}_{strict} - \text{calls}_{ASD} \le \#\text{accepted mismatches}",
    relation="<=",
    hypotheses="a fixed trace, decoded to the same length",
    status="proved",
)
def calls_saved_bound(exceptions: int) -> int:
    """Most calls that `exceptions` accepted mismatches can save."""
    return exceptions


@theorem(
    "A8.gain",
    source="ours",
    statement=r"\text{calls}_{strict} / \text{calls}_{ASD} - 1 \le \#\text{exceptions} / \text{calls}_{ASD}",
    relation="<=",
    hypotheses="as A8; calls cost the same",
    status="proved",
)
def gain_bound(exceptions: int, asd_calls: int) -> Fraction:
    """Largest relative throughput gain over strict greedy."""
    return Fraction(exceptions, asd_calls)


@theorem(
    "A8.count",
    source="ours",
    statement=r"\#\text{exceptions} \le \min(m \cdot \text{calls},\, N_B)",
    relation="<=",
    hypotheses="N_B: most of the smallest admissible regrets (r <= g s_0) that sum to at most B (+ n 1e-9, suffix)",
    status="proved",
)
def exceptions_in_request(rule: Any, mismatches: Sequence[Any], block_size: int, blocks: int) -> Any:
    """Most mismatches that a request over these `mismatches` (regrets of the trace's mismatches) can accept."""
    room, count = spend_bound(rule, blocks), 0
    for regret in sorted(r for r in mismatches if r <= regret_bound(rule, block_size)):
        room -= regret
        if room < 0:
            break
        count += 1
    return min(rule.cap * blocks, count)


@theorem(
    "A9",
    source="Wald's identity; upper end with Lorden 1970",
    statement=r"E[N] \le (B + \min(C_{max}, E[X^2]/\mu)) / \mu",
    relation="<=",
    hypotheses="i.i.d. positions, 0 < B < inf, controls > 0, mu = E[X] > 0; N the first block with a budget rejection; "
    "suffix: B + 1e-9 in place of B",
    status="proved",
)
def exhaustion_upper(rule: Any, mean: Any, second_moment: Any, largest: Any) -> Any:
    """Upper end of E[N] from the moments of the unconstrained block charge X and its largest value C_max.

    The published slack counts as budget: one 1e-9 for `suffix`. Raises UsageError if mu <= 0: E[N] is infinite.
    """
    _check_mean(mean)
    return (rule.budget + slack(rule) + min(largest, second_moment / mean)) / mean


@theorem(
    "A9.lower",
    source="Wald's identity",
    statement=r"E[N] \ge B / \mu",
    relation=">=",
    hypotheses="as A9; strict for suffix",
    status="proved",
)
def exhaustion_lower(rule: Any, mean: Any) -> Any:
    """Lower end of E[N]. Raises UsageError if mu <= 0."""
    _check_mean(mean)
    return rule.budget / mean


def _check_mean(mean: Any) -> None:
    if not mean > 0:
        raise UsageError(f"the mean block charge must be > 0, not {mean}: without charges the budget never runs out")


@theorem(
    "A9.survival",
    source="ours",
    statement=r"P(N > n) = P(X_1 + \dots + X_n \le B)",
    relation="=",
    hypotheses="i.i.d. blocks, suffix, charges on a lattice wider than the slack",
    status="proved",
)
def survival(charges: dict[Any, Any], budget: Any, blocks: int) -> Any:
    """P(no budget rejection in n blocks) from the law {charge: probability} of the unconstrained block charge."""
    total: dict[Any, Any] = {0: 1}
    for _ in range(blocks):
        grown: dict[Any, Any] = {}
        for (spent, mass), (charge, weight) in product(total.items(), charges.items()):
            if spent + charge <= budget + SLACK:
                grown[spent + charge] = grown.get(spent + charge, 0) + mass * weight
        total = grown
    return sum(total.values())


@theorem(
    "A9.permanent",
    source="ours",
    statement=r"E[\text{blocks until nothing can be accepted}] \le (B + \min(C_{max}, E[X^2]/\mu)) / \mu",
    relation="<=",
    hypotheses="tempting reading of A9, and wrong: small regrets still fit long after the first budget rejection",
    status="false",
    counterexample="K = m = 1, no matches, F = {1: .99, .01: .01}, B = 1.5: bound 2.52, expectation 5,000",
    replacement="A9 is about N; until nothing fits, E <= floor(B / r_min) / ((1 - a) F(r_min)), r_min > 0 least admissible",
)
def permanent_exhaustion_bound(rule: Any, mean: Any, second_moment: Any, largest: Any) -> Any:
    """The false claim's bound: that of A9."""
    return exhaustion_upper(rule, mean, second_moment, largest)


def permanent_exhaustion_upper(rule: Any, positions: Any) -> Any:
    """The replacement of A9.permanent; `positions` has `match`, `regrets` {value: probability}, `block_size`.

    While anything fits, r_min fits at the first position, so a block is charged at least r_min with probability at
    least (1 - a) F(r_min), and the budget holds floor(B / r_min) such charges. 0 if no regret > 0 is admissible.
    """
    cap = regret_bound(rule, positions.block_size)
    least = min(
        (r for r, mass in positions.regrets.items() if 0 < r <= cap and r < math.inf and mass > 0), default=None
    )
    if least is None or positions.match == 1:
        return 0
    return math.floor(spend_bound(rule, 1) / least) / ((1 - positions.match) * positions.regrets[least])


@theorem(
    "A10",
    source="ours",
    statement=r"\max \sum_b L_b \text{ s.t. spend} \le B,\; L_b \text{ gate- and cap-feasible}",
    relation="=",
    hypotheses="recorded blocks, held fixed",
    status="report",
)
def best_plan(rule: Any, blocks: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> int:
    """Most accepted tokens over all plans of stopping lengths, by enumeration: exponential, for a few blocks."""
    free = _Free(rule)
    options = []
    for matches, regrets in blocks:
        lengths = [n for n in range(len(matches) + 1) if feasible(free, matches, regrets, math.inf, n)]
        options.append([(n, sum(regrets[i] for i in range(n) if not matches[i])) for n in lengths])
    room = spend_bound(rule, len(blocks))
    return max(sum(n for n, _ in plan) for plan in product(*options) if sum(c for _, c in plan) <= room)


class _Free:
    """A rule's gate and cap without its budget; strict greedy where the rule itself is."""

    def __init__(self, rule: Any) -> None:
        self.gate, self.cap, self.variant = rule.gate, rule.cap, rule.variant
        self.budget = math.inf if rule.budget > 0 or rule.variant == "normalized" else 0


@theorem(
    "A10.ratio",
    source="ours",
    statement=r"\text{ASD} / \text{optimum} = 1/K \text{ on } (1, \infty, \dots), (1, M, \dots, M)",
    relation="=",
    hypotheses="suffix, B = g = m = 1, K >= 2: spending greedily has no positive lower bound against hindsight",
    status="proved",
)
def myopia_ratio(block_size: int) -> Fraction:
    """Accepted tokens of the rule over the offline optimum, on two blocks built to punish greed."""
    return Fraction(1, block_size)
