"""ASD, regret-budgeted greedy verification: what gate, cap and budget guarantee on every path (A1 to A7).

Source: 2608.03447 for the rule; the statements and proofs are ours (docs/theory/asd.md). Whole requests:
`asd_request`. A `rule` is anything with
`budget`, `gate`, `cap`, `variant`. A block is (`matches`, `regrets`), both (K,); a trace the same over absolute
positions (T,). Numbers may be Fractions, then everything is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .registry import theorem

ASD = "arXiv:2608.03447"
SLACK = Fraction(1, 10**9)  # the published tolerance of the `suffix` budget test


def suffix_value(rule: Any, position: int, size: int) -> Fraction:
    """s_i: K - i (`suffix`) or (K - i) / K (`normalized`)."""
    return Fraction(size - position, 1 if rule.variant == "suffix" else size)


def slack(rule: Any, blocks: int = 1) -> Fraction:
    """What the published tolerance can add over `blocks` blocks: n 1e-9 for `suffix`, 0 for `normalized`."""
    return blocks * SLACK if rule.variant == "suffix" else Fraction(0)


def feasible(rule: Any, matches: Sequence[Any], regrets: Sequence[Any], remaining: Any, length: int) -> bool:
    """Whether accepting the first `length` tokens satisfies gate, cap and budget, stated on the set, not scanned."""
    taken = [i for i in range(length) if not matches[i]]
    paid = [regrets[i] for i in taken]
    if not taken:
        return True
    if rule.variant == "suffix" and 0 in (rule.budget, rule.gate, rule.cap):
        return False
    gate = all(r < math.inf and r / suffix_value(rule, i, len(matches)) <= rule.gate for i, r in zip(taken, paid))
    budget = sum(paid) <= remaining + slack(rule)
    if rule.variant == "normalized":
        budget = budget and sum(paid[:-1]) < remaining
    return gate and len(taken) <= rule.cap and budget


@theorem(
    "A1",
    source=f"{ASD}; overspend ours",
    statement=r"\sum \text{accepted } r \le B \;(\text{normalized}), \quad \le B + n\,10^{-9} \;(\text{suffix})",
    relation="<=",
    hypotheses="a request of n blocks",
    status="proved",
)
def spend_bound(rule: Any, blocks: int) -> Any:
    """Upper bound of the nats a request can spend in `blocks` blocks."""
    return rule.budget + slack(rule, blocks)


@theorem(
    "A1.slack",
    source="overspend of the published tolerance, ours",
    statement=r"\max \sum \text{accepted } r = B + n\,10^{-9} \;(\text{suffix, clamped ledger})",
    relation="=",
    hypotheses="B, g > 0, m >= 1, g large enough for B + 1e-9; n blocks, what is left is clamped at 0 after each",
    status="proved",
)
def worst_spend(budget: Any, blocks: int) -> Any:
    """The spend that `blocks` blocks with regrets B + 1e-9, 1e-9, 1e-9, ... reach: the bound A1 is attained."""
    return budget + blocks * SLACK


@theorem(
    "A1.signed",
    source="repair of the published tolerance, ours",
    statement=r"\sum \text{accepted } r \le B + 10^{-9}",
    relation="<=",
    hypotheses="suffix with a signed ledger: what is left may be negative",
    status="proved",
)
def signed_spend_bound(budget: Any) -> Any:
    """What a ledger that remembers its overspend can spend, however many blocks come."""
    return budget + SLACK


@theorem(
    "A2",
    source=ASD,
    statement=r"\#\{\text{accepted mismatches in a block}\} \le m",
    relation="<=",
    hypotheses="any block, any state",
    status="proved",
)
def exceptions_bound(rule: Any, block_size: int) -> Any:
    """Most accepted mismatches of a block of K drafts: min(m, K)."""
    return min(rule.cap, block_size)


@theorem(
    "A3",
    source=ASD,
    statement=r"r_i \le g\, s_i \text{ for each accepted mismatch}",
    relation="<=",
    hypotheses="any block, any state; exact arithmetic (in floats: r_i / s_i <= g)",
    status="proved",
)
def regret_bounds(rule: Any, positions: Sequence[int], block_size: int) -> list[Any]:
    """g s_i for each of the `positions` of accepted mismatches."""
    return [rule.gate * suffix_value(rule, i, block_size) for i in positions]


@theorem(
    "A3.block",
    source=ASD,
    statement=r"r \le g K \;(\text{suffix}), \quad r \le g \;(\text{normalized})",
    relation="<=",
    hypotheses="any block of K drafts, any state",
    status="proved",
)
def regret_bound(rule: Any, block_size: int) -> Any:
    """The largest regret that can ever be accepted: g s_0."""
    return rule.gate * suffix_value(rule, 0, block_size)


@theorem(
    "A4",
    source=ASD,
    statement=r"m = 0, \text{ or a zero control of suffix, or } B = 0 \text{ of normalized} \Rightarrow \text{strict greedy}",
    relation="=",
    hypotheses="any block; normalized with g = 0 is the exception A4.tie",
    status="proved",
)
def strict_length(matches: Sequence[Any]) -> int:
    """Accepted length of strict greedy verification: the leading matches."""
    return next((i for i, match in enumerate(matches) if not match), len(matches))


@theorem(
    "A4.tie",
    source="reading of the published normalized code",
    statement=r"g = 0 \Rightarrow \text{normalized is strict greedy}",
    relation="=",
    hypotheses="normalized, g = 0, m >= 1, budget left",
    status="false",
    counterexample="K = 1, a tie: r = 0 at an id above the argmax. 0 / 1 <= 0 and 0 < B: accepted, strict rejects",
    replacement="at g = 0 exactly the zero-regret ties are accepted, at most m a block, while budget is left",
)
def strict_length_at_zero_gate(matches: Sequence[Any]) -> int:
    """The false claim's value: the leading matches."""
    return strict_length(matches)


def tie_length(rule: Any, matches: Sequence[Any], regrets: Sequence[Any], remaining: Any) -> int:
    """The replacement of A4.tie: leading matches and, while budget is left, up to m zero-regret ties."""
    ties = 0
    for i, match in enumerate(matches):
        if not match:
            ties += 1
            if regrets[i] != 0 or ties > rule.cap or not remaining > 0:
                return i
    return len(matches)


@theorem(
    "A5",
    source=ASD,
    statement=r"L = \max\{n : \text{the first } n \text{ tokens satisfy gate, cap and budget}\}",
    relation="=",
    hypotheses="any block, any budget left; the constraints are prefix-closed",
    status="proved",
)
def longest_feasible(rule: Any, matches: Sequence[Any], regrets: Sequence[Any], remaining: Any) -> int:
    """Length of the longest prefix that satisfies the constraints as a set."""
    return max(n for n in range(len(matches) + 1) if feasible(rule, matches, regrets, remaining, n))


@theorem(
    "A6",
    source="ours",
    statement=r"L_{B, g, m} \le L_{B', g', m'} \text{ for } B \le B', g \le g', m \le m'",
    relation=">=",
    hypotheses="one block; the same spend so far",
    status="proved",
)
def dominated_length(rule: Any, matches: Sequence[Any], regrets: Sequence[Any], remaining: Any) -> int:
    """Accepted length under the smaller controls, which the larger ones must reach."""
    return longest_feasible(rule, matches, regrets, remaining)


@theorem(
    "A6.strict",
    source=ASD,
    statement=r"L_{ASD} \ge L_{strict}",
    relation=">=",
    hypotheses="one block, any state",
    status="proved",
)
def least_length(matches: Sequence[Any]) -> int:
    """Strict's accepted length, which ASD must reach on every block."""
    return strict_length(matches)


@theorem(
    "A7",
    source="ours",
    statement=r"\log P(x_{1..T}) = \sum_t \log \max_v p_t(v) - \text{regret spent}",
    relation="=",
    hypotheses="temperature 1; p_t given the REALISED prefix; T the end of a call",
    status="proved",
)
def log_likelihood(greedy_log_probs: Sequence[float], spent: float) -> float:
    """log P of the realised tokens in nats, from log max p_t along them and the spend."""
    return math.fsum(greedy_log_probs) - spent


@theorem(
    "A7.bound",
    source="ours",
    statement=r"\log P(x_{1..T}) \ge \sum_t \log \max_v p_t(v) - B - n\,10^{-9}",
    relation=">=",
    hypotheses="as A7; n calls (the tolerance only for suffix). Says nothing of the strict greedy trajectory",
    status="proved",
)
def log_likelihood_bound(rule: Any, greedy_log_probs: Sequence[float], blocks: int) -> float:
    """Lower bound of log P of the realised tokens, against the greedy envelope of the SAME prefixes."""
    return math.fsum(greedy_log_probs) - float(spend_bound(rule, blocks))


@theorem(
    "A7.perplexity",
    source="ours",
    statement=r"\mathrm{ppl} \le e^{(B + n 10^{-9})/T}\, \mathrm{ppl}_{envelope}",
    relation="<=",
    hypotheses="as A7.bound, the slack for suffix only; envelope: the greedy log-probabilities along the realised prefix",
    status="proved",
)
def perplexity_bound(rule: Any, greedy_log_probs: Sequence[float], blocks: int) -> float:
    """Upper bound of the per-token perplexity of the realised tokens."""
    return math.exp(-log_likelihood_bound(rule, greedy_log_probs, blocks) / len(greedy_log_probs))


@theorem(
    "A7.trajectory",
    source="ours",
    statement=r"\log P(x^{ASD}_{1..T}) \ge \log P(x^{strict}_{1..T}) - B",
    relation=">=",
    hypotheses="tempting, and wrong: an accepted mismatch moves to contexts that strict greedy never sees",
    status="false",
    counterexample="T = 2, first token regret ln 2 <= B: strict continues with probability 1, ASD with 1/V, any V",
    replacement="the bound holds against the greedy envelope of the realised prefix: A7.bound",
)
def trajectory_bound(rule: Any, strict_log_likelihood: float) -> float:
    """The false claim's bound."""
    return strict_log_likelihood - float(rule.budget)


@theorem(
    "A7.tv",
    source="ours",
    statement=r"\mathrm{TV}(\text{ASD}, \text{strict}) \in \{0, 1\}",
    relation="=",
    hypotheses="deterministic drafts: both outputs are points, so TV says only whether they are equal",
    status="proved",
)
def deterministic_tv(tokens: Sequence[int], strict_tokens: Sequence[int]) -> int:
    """0 if the two outputs agree, else 1."""
    return int(list(tokens) != list(strict_tokens))
