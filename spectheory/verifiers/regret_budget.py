"""ASD: greedy verification that may accept a mismatch, within a gate a token, a cap a block and a budget a request.

Source: Approximate Speculative Decoding, arXiv 2608.03447, in both published variants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import Array, argmax, is_rational, log0, one_hot, to_law, to_numpy
from ..errors import DataError, UsageError
from ..pmf import check_ids, validate_logits
from ..protocols import Block, Verdict

# The published tolerance of the `suffix` budget test. What is left is clamped at 0, so every block may overspend again.
SLACK = Fraction(1, 10**9)
VARIANTS = ("suffix", "normalized")


@dataclass(frozen=True)
class Charge:
    """One accepted mismatch: number of its `block` in the request, `position` in the block (both from 0), `regret` in
    nats, suffix `value`, and what the request has `spent` with it."""

    block: int
    position: int
    regret: Any
    value: Any
    spent: Any


@dataclass(frozen=True)
class RequestState:
    """What a request carries from block to block. States are equal when budget and spend are: `ledger` is history."""

    remaining: Any
    spent: Any = 0
    blocks: int = field(default=0, compare=False)
    ledger: tuple[Charge, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class RegretBudget:
    """Accept x_i iff it is the target's argmax, or its regret r_i = max z_i - z_i(x_i) passes gate, budget and cap.

    Gate: r_i / s_i <= `gate`. Cap: at most `cap` accepted mismatches a block. Budget, c the block's charge before i:
    `suffix` (s_i = K - i) tests c + r_i <= left + 1e-9, and is strict greedy when a control is 0; `normalized`
    (s_i = (K - i) / K) tests c < left and c + r_i <= left. The first failure ends the prefix; the target's greedy token
    follows. Argmax ties go to the lowest index. `budget` and regrets are in nats of logit; all controls may be inf.
    Fractions stay exact. Raises UsageError for a NaN or negative control, a fractional cap, an unknown variant.

    Source: 2608.03447. The published `normalized` code turns NaN scores into regret 0 (here: DataError) and charges a
    block's regrets one by one after admitting them by their sum, which can fail by a rounding; here the sum is charged.
    """

    budget: Any
    gate: Any
    cap: Any
    variant: str = "suffix"

    def __post_init__(self) -> None:
        for name in ("budget", "gate", "cap"):
            control = getattr(self, name)
            if isinstance(control, bool | str) or not control >= 0:
                raise UsageError(f"{name} must be a number >= 0, not {control!r}")
        if self.cap != math.inf and self.cap != int(self.cap):
            raise UsageError(f"cap must be a whole number of tokens or inf, not {self.cap!r}")
        if self.variant not in VARIANTS:
            raise UsageError(f"variant must be one of {', '.join(VARIANTS)}, not {self.variant!r}")

    @property
    def strict(self) -> bool:
        """True where the published `suffix` code short-circuits to strict greedy: a control is 0."""
        return self.variant == "suffix" and 0 in (self.budget, self.gate, self.cap)

    def start(self) -> RequestState:
        """The state of a fresh request."""
        return RequestState(self.budget)

    def value(self, position: int, size: int, exact: bool = False) -> Any:
        """Suffix value s_i of `position` i in a block of `size` K: K - i, or (K - i) / K (a Fraction where `exact`)."""
        if self.variant == "suffix":
            return size - position
        return Fraction(size - position, size) if exact else (size - position) / size

    def within_gate(self, regret: Any, position: int, size: int) -> bool:
        """r / s <= g, divided as published; an infinite regret never passes."""
        return bool(
            regret < math.inf and regret / self.value(position, size, isinstance(regret, Fraction)) <= self.gate
        )

    def within_budget(self, charge: Any, regret: Any, remaining: Any) -> bool:
        """Whether a mismatch fits behind the `charge` that the block has already run up."""
        if self.variant == "suffix":
            return bool(charge + regret <= remaining + SLACK)
        return bool(charge < remaining and charge + regret <= remaining)

    def scan(self, matches: Any, regrets: Any, remaining: Any) -> tuple[int, list[int]]:
        """(accepted length, accepted mismatched positions) of a block: `matches` (K,) bool, `regrets` (K,)."""
        size, taken = len(matches), list[int]()
        charge: Any = 0
        for i in range(size):
            if matches[i]:
                continue
            regret = regrets[i]
            if (
                self.strict
                or len(taken) >= self.cap
                or not self.within_gate(regret, i, size)
                or not self.within_budget(charge, regret, remaining)
            ):
                return i, taken
            charge = charge + regret
            taken.append(i)
        return size, taken

    def settle(self, remaining: Any, charge: Any, rejected: Any) -> Any:
        """The budget left after a block: clamped at 0, as published. `rejected` regret is not charged."""
        return max(remaining - charge, 0)

    def verify(self, block: Block, state: RequestState | None = None, rng: Any = None) -> Verdict:
        """Verify a block by its target logits (K+1, V), or by log p where it has none. Deterministic: `rng` is unused.

        Raises DataError naming row and token: NaN, +inf or all -inf logits, ids out of range (-1 included), a block
        longer than its logits.
        """
        return self._decide(block.tokens, *scores(block), state)

    def verify_scores(
        self,
        top_logit: Array,
        top_id: Array,
        drafted_logit: Array,
        tokens: Array,
        state: RequestState | None = None,
        info: dict[str, Any] | None = None,
        vocab_size: int | None = None,
    ) -> Verdict:
        """`verify` from compact scores: row maxima (K+1,), argmax ids (K+1,), logits of the drafted `tokens` (K,).

        `info` (say request and row) goes into error messages. Raises DataError naming row and position: NaN or +inf, a
        maximum that is -inf or below the drafted logit, an id outside [0, `vocab_size`), K drafts without K + 1 rows.
        """
        tokens, top_id = np.asarray(tokens), np.asarray(top_id)
        width = math.inf if vocab_size is None else vocab_size
        checked = check_scores(to_law(top_logit), top_id, to_law(drafted_logit), tokens, width, where(info))
        return self._decide(tokens, *checked, state)

    def outcomes(self, block: Block, state: RequestState | None = None) -> list[tuple[Any, int, Array, RequestState]]:
        """The one outcome of a deterministic rule: [(1, accepted, one-hot law of the next token (V,), state)]."""
        verdict = self.verify(block, state)
        rows = to_law(block.p if block.logits is None else block.logits)
        return [(1, verdict.accepted, one_hot(int(verdict.tokens[-1]), rows[0]), verdict.state)]

    def _decide(self, tokens: Any, top: Any, ids: Any, drafted: Any, state: RequestState | None) -> Verdict:
        state = self.start() if state is None else state
        exact, size = is_rational(top) and is_rational(drafted), len(tokens)
        regrets = [Fraction(a) - Fraction(b) if exact else float(a - b) for a, b in zip(top[:size], drafted)]
        accepted, taken = self.scan(tokens == ids[:size], regrets, state.remaining)
        charges, spent = list(state.ledger), state.spent
        charge: Any = 0
        for i in taken:
            charge = charge + regrets[i]
            entry = Charge(state.blocks, i, regrets[i], self.value(i, size, exact), spent + charge)
            charges.append(entry)
        left = self.settle(state.remaining, charge, regrets[accepted] if accepted < size else 0)
        after = RequestState(left, spent + charge, state.blocks + 1, tuple(charges))
        return Verdict(accepted, np.append(tokens[:accepted], ids[accepted]).astype(np.int64), after)


def where(info: dict[str, Any] | None) -> str:
    """'request 3, row 17: ' from a block's provenance, '' without any."""
    return "".join(f"{k} {v}, " for k, v in (info or {}).items())[:-2] + ": " if info else ""


def scores(block: Block) -> tuple[Any, Any, Any]:
    """Compact scores of a block, checked: row maxima (K+1,), argmax ids (K+1,), logits of the drafted tokens (K,).

    Raises DataError naming the row and position.
    """
    if block.logits is None and block.p is None:
        raise DataError(f"{where(block.info)}a greedy rule needs the logits of the block, or p")
    z = to_numpy(to_law(block.logits) if block.logits is not None else log0(to_law(block.p)))
    if z.ndim != 2 or z.shape[0] != block.size + 1:
        raise DataError(
            f"{where(block.info)}a block of K = {block.size} drafts needs logits (K+1, V), not {tuple(z.shape)}"
        )
    try:
        z = z if is_rational(z) else validate_logits(z)
        ids = check_ids(block.tokens, z.shape[1], "drafted token").astype(np.int64)  # an empty block has no dtype
    except DataError as error:
        raise DataError(f"{where(block.info)}{error}") from None
    top_id = argmax(z)
    return z[np.arange(block.size + 1), top_id], top_id, z[np.arange(block.size), ids]


def check_scores(top: Any, ids: Any, drafted: Any, tokens: Any, width: float, place: str) -> tuple[Any, Any, Any]:
    """Compact scores of one block, checked; raises DataError as `RegretBudget.verify_scores` states."""
    size = len(tokens)
    if top.shape != (size + 1,) or ids.shape != (size + 1,) or drafted.shape != (size,):
        raise DataError(
            f"{place}a block of K = {size} drafts needs K + 1 maxima and argmax ids and K drafted logits, "
            f"not shapes {top.shape}, {ids.shape} and {drafted.shape}"
        )
    faults = [
        ((ids < 0) | (ids >= width), f"its argmax id is outside [0, {width})"),
        ((tokens < 0) | (tokens >= width), f"its drafted id is outside [0, {width})"),
    ]
    if not is_rational(top):
        faults += [
            (np.isnan(top) | np.isinf(top), "its maximum is not finite"),
            (np.isnan(drafted) | (drafted == math.inf), "its drafted logit is NaN or +inf"),
        ]
    faults += [
        (top[:size] < drafted, "its drafted logit exceeds its maximum"),
        ((tokens == ids[:size]) & (top[:size] != drafted), "its drafted token is the argmax but not at the maximum"),
    ]
    for bad, cause in faults:
        if bad.any():
            raise DataError(f"{place}position {int(np.flatnonzero(bad)[0])}: {cause}")
    return top, ids, drafted
