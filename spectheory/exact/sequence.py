"""The exact law of the engine over whole sequences (theorem Q1), by vectorised enumeration of all V^T sequences.

State = (prefix, j), j = drafts already accepted in this block of K. For j < K the next token is verified: accepted it
leads to j + 1, corrected to a new block, j = 0. At j = K the bonus token is drawn from the target, j = 0. The engine does
not look at T: its last block is not shortened. NumPy; Fractions stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import Array, scalar, zeros_like
from ..errors import CostError, UsageError
from ..models.tabular import Tabular, as_table, exact_table
from ..pmf import kl, total_variation
from ..protocols import Model
from ..verifiers.token import by_blocks, step_weights

# Numbers held at once by an enumeration: V^T sequences times K + 1 positions in the block.
ENUMERATION_CAP = 2**25


def sequence_law(verifier: Any, model: Model, *, length: int, block_size: int) -> Array:
    """P~, (V,) * T: the law of the first `length` tokens that the engine emits, in blocks of `block_size` drafts.

    For token rules, and for whatever offers `outcomes` (`exact.block`). Raises UsageError for a length or block size
    below 1, CostError when V^T (K + 1) exceeds ENUMERATION_CAP.
    """
    check_horizon(length, block_size, model.vocab_size)
    if by_blocks(verifier):
        from .block import engine_law

        return engine_law(verifier, model, length=length, block_size=block_size)
    table = as_table(model, length)
    accepted, corrected = step_weights(verifier, table.target, table.draft)
    return _enumerate(table, accepted, corrected, length, block_size)


def target_law(model: Model, *, length: int) -> Array:
    """P, (V,) * T: the law of `length` tokens of the target. Raises as `sequence_law`."""
    check_horizon(length, 1, model.vocab_size)
    table = as_table(model, length)
    return _enumerate(table, table.target, zeros_like(table.target), length, length)


def sequence_deviation(verifier: Any, model: Model, *, length: int, block_size: int) -> Any:
    """TV(P~, P) over `length` tokens. Exact on Fractions. Raises as `sequence_law`."""
    law = sequence_law(verifier, model, length=length, block_size=block_size)
    return total_variation(law.ravel(), target_law(model, length=length).ravel())


def sequence_kl(verifier: Any, model: Model, *, length: int, block_size: int) -> tuple[float, float]:
    """(KL(P || P~), KL(P~ || P)) over `length` tokens, in nats; infinite where supports demand it. Raises as `sequence_law`."""
    law = sequence_law(verifier, model, length=length, block_size=block_size).ravel()
    target = target_law(model, length=length).ravel()
    return float(kl(target, law)), float(kl(law, target))


def _enumerate(table: Tabular, accepted: Array, corrected: Array, length: int, block_size: int) -> Array:
    """Q1, one token a round: weights (V^t, K + 1) over (prefix, j), each prefix with its row of the table."""
    size, contexts = table.vocab_size, np.array([table.initial])
    weights = zeros(table, (1, block_size + 1))
    weights[0, 0] = weights[0, 0] + 1
    for t in range(length - 1):
        live = min(t + 1, block_size)  # deeper positions in the block cannot have been reached
        grid = zeros(table, (len(weights), size, block_size + 1))
        fresh = weights[:, :live].sum(axis=1)[:, None] * corrected[contexts]
        if t >= block_size:
            fresh = fresh + weights[:, block_size, None] * table.target[contexts]
        grid[:, :, 0] = fresh
        grid[:, :, 1 : live + 1] = weights[:, None, :live] * accepted[contexts][:, :, None]
        weights = grid.reshape(-1, block_size + 1)
        contexts = table.step(np.repeat(contexts, size), np.tile(np.arange(size), len(contexts)))
    law = weights[:, :block_size].sum(axis=1)[:, None] * (accepted + corrected)[contexts]  # j no longer matters
    return (law + weights[:, block_size, None] * table.target[contexts]).reshape((size,) * length)


def zeros(table: Tabular, shape: tuple[int, ...]) -> Array:
    """Zeros to accumulate in: Fractions if the table is exact."""
    return np.full(shape, Fraction(0), dtype=object) if exact_table(table) else np.zeros(shape)


def check_horizon(length: int, block_size: int, vocab_size: int) -> None:
    """Raises UsageError for a length or block size below 1, CostError for an enumeration beyond its caps."""
    check_sizes(length, block_size)
    cost = vocab_size**length * (min(block_size, length) + 1)
    if cost > ENUMERATION_CAP:
        raise CostError(
            f"enumerating {vocab_size}^{length} sequences with K = {block_size} holds {cost:.3g} numbers, above "
            f"ENUMERATION_CAP = {ENUMERATION_CAP}: use theory.nsd.sequence_bounds, or an estimate"
        )
    if length > 64:
        raise CostError(f"a law over {length} tokens needs {length} axes; NumPy arrays have at most 64")


def check_sizes(length: int, block_size: int) -> None:
    """Raises UsageError for a length or block size below 1."""
    if length < 1:
        raise UsageError(f"length must be >= 1, not {length}")
    if block_size < 1:
        raise UsageError(f"block_size must be >= 1, not {block_size}")


@dataclass(frozen=True)
class Marginals:
    """Per position t = 1..T: laws of the token, `emitted` and `target` (T, V), and their `deviation` TV (T,)."""

    emitted: Array
    target: Array
    deviation: Array


def token_marginals(verifier: Any, model: Model, *, length: int, block_size: int) -> Marginals:
    """The law of each single token, emitted and target's: (context, j) is a Markov chain, so T may be large.

    Raises UsageError for a length or block size below 1, CostError when a non-tabular model must be unrolled too far.
    """
    check_sizes(length, block_size)
    table = as_table(model, length)
    laws = []
    if by_blocks(verifier):
        whole = sequence_law(verifier, model, length=length, block_size=block_size)
        axes = range(length)
        laws.append(np.stack([whole.sum(axis=tuple(a for a in axes if a != t)) for t in axes]))
    else:
        laws.append(_flow(table, *step_weights(verifier, table.target, table.draft), length, block_size)[0])
    laws.append(_flow(table, table.target, zeros_like(table.target), length, length)[0])
    return Marginals(laws[0], laws[1], total_variation(laws[0], laws[1]))


def _flow(table: Tabular, accepted: Array, corrected: Array, length: int, block_size: int) -> tuple[Array, Array]:
    """Push the law of (context, j) through T tokens: token laws (T, V) and expected calls that start in each context (S,)."""
    shape = (len(table.target), block_size + 1)
    state = zeros(table, shape)
    state[table.initial, 0] = state[table.initial, 0] + 1
    out, calls = [], 0 * state[:, 0]
    for t in range(length):
        calls = calls + state[:, 0]
        fresh = state[:, :block_size].sum(axis=1)[:, None] * corrected + state[:, block_size, None] * table.target
        kept = state[:, None, :block_size] * accepted[:, :, None]  # (S, V, K)
        out.append((fresh + kept.sum(axis=2)).sum(axis=0))
        if t + 1 < length:
            flow = np.concatenate([fresh[:, :, None], kept], axis=2)
            state = zeros(table, shape)
            met = (flow != 0).any(axis=2)
            table.step(*np.nonzero(met))  # a context that is reached must be in the table
            np.add.at(state, table.successors[met], flow[met])  # type: ignore[index]
    return np.stack(out), calls


@dataclass(frozen=True)
class CallLaw:
    """Target calls for a fixed horizon of T tokens.

    `calls` (T + 1,): law of the number of calls started before T tokens were out, entry n for n calls. `accepted`
    (K + 1,): law of the drafts accepted in one of these calls, each run to its end, weighted by how often it occurs.
    `tokens_per_call`: 1 + the mean of `accepted`, what speed models need (the last call's surplus counts as output).
    """

    calls: Array
    accepted: Array
    tokens_per_call: Any

    @property
    def mean_calls(self) -> Any:
        return scalar((self.calls * np.arange(len(self.calls))).sum())


def call_law(verifier: Any, model: Model, *, length: int, block_size: int) -> CallLaw:
    """Exact law of the number of calls and of accepted lengths for `length` tokens. Token rules; polynomial in T.

    Raises UsageError for sizes below 1 and for rules that decide by blocks (`exact.block_law` has theirs).
    """
    check_sizes(length, block_size)
    if by_blocks(verifier):
        raise UsageError(f"{type(verifier).__name__} decides by blocks: see exact.block_law for its accepted lengths")
    table = as_table(model, length + block_size)
    accepted, corrected = step_weights(verifier, table.target, table.draft)
    calls = _count_calls(table, accepted, corrected, length, block_size)
    starts = _flow(table, accepted, corrected, length, block_size)[1]
    lengths = _accepted_lengths(table, accepted, starts, block_size)
    lengths = lengths / lengths.sum()
    return CallLaw(calls, lengths, 1 + scalar((lengths * np.arange(block_size + 1)).sum()))


def _count_calls(table: Tabular, accepted: Array, corrected: Array, length: int, block_size: int) -> Array:
    """Law (T + 1,) of the calls started before T tokens are out: (context, j, calls) is a Markov chain."""
    first = zeros(table, (length + 1,))
    first[0] = first[0] + 1
    state: dict[tuple[int, int], Array] = {(table.initial, 0): first}
    for t in range(length):
        begun: dict[tuple[int, int], Array] = {}
        for (s, j), law in state.items():
            law = np.concatenate([law[:1] * 0, law[:-1]]) if j == 0 else law  # a call starts here
            to = [(0, table.target[s])] if j == block_size else [(j + 1, accepted[s]), (0, corrected[s])]
            for k, weight in to:
                for x in np.flatnonzero(weight):
                    key = (int(table.successors[s, x]) if t + 1 < length else -1, k)  # type: ignore[index]
                    begun[key] = begun.get(key, law * 0) + law * weight[x]
        state = begun
    return sum(state.values(), 0 * first)


def _accepted_lengths(table: Tabular, accepted: Array, starts: Array, block_size: int) -> Array:
    """Expected calls (K + 1,) by drafts accepted, given expected call starts by context (S,)."""
    reach, alive = starts, []
    for _ in range(block_size):
        alive.append(reach.sum())
        flow = reach[:, None] * accepted
        reach = zeros_like(reach)
        met = flow != 0
        if met.any():
            np.add.at(reach, table.successors[met], flow[met])  # type: ignore[index]
    alive.append(reach.sum())
    at_least = np.array(alive)
    return at_least - np.append(at_least[1:], 0 * at_least[:1])
