"""The exact law of rules that decide a block at a time: drafts enumerated, verdicts taken from the rule's `outcomes`.

`outcomes(block, state) -> [(probability, accepted, law of the next token (V,), next state)]`. States must be hashable;
they travel from block to block, so the law of (sequence, state) is exact too. NumPy; Fractions stay exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from ..arrays import Array, scalar
from ..errors import CostError, DataError, UsageError
from ..models.tabular import Tabular, as_table, exact_table
from ..protocols import Block, Model, supports
from ..verifiers.token import drafted
from .sequence import check_sizes, zeros

# Draft paths times table rows times states that an exact block law may visit.
BLOCK_CAP = 2**20

# What one call can commit: (tokens committed, probability, state after it).
Commit = tuple[tuple[int, ...], Any, Hashable]


@dataclass(frozen=True)
class BlockLaw:
    """One call from the initial context: `accepted` (K + 1,), its mean, and `tokens` (V,) * (K + 1).

    `tokens` is the law of the first K + 1 tokens, a shorter commit completed from the target.
    """

    accepted: Array
    mean_accepted: Any
    tokens: Array


def block_law(verifier: Any, model: Model, *, block_size: int) -> BlockLaw:
    """The exact law of one call of any rule that offers `outcomes`. Raises UsageError, CostError as `engine_law`."""
    _check(verifier, block_size, block_size + 1)
    table = as_table(model, block_size + 1)
    size = table.vocab_size
    _check_cost(1, table, block_size)
    accepted = zeros(table, (block_size + 1,))
    tokens = zeros(table, (size,) * (block_size + 1))
    for commit, weight, _ in _commits(verifier, table, table.initial, verifier_start(verifier), block_size):
        accepted[len(commit) - 1] += weight
        for rest, mass in _continuations(table, _walk(table, commit), block_size + 1 - len(commit)):
            tokens[(*commit, *rest)] += weight * mass
    return BlockLaw(accepted, scalar((accepted * np.arange(block_size + 1)).sum()), tokens)


def engine_law(verifier: Any, model: Model, *, length: int, block_size: int) -> Array:
    """P~, (V,) * T, of a rule that offers `outcomes`; its state persists from block to block.

    Raises UsageError for sizes below 1 or a rule without `outcomes`, CostError beyond BLOCK_CAP.
    """
    table = as_table(model, length + block_size)
    out = zeros(table, (table.vocab_size,) * length)
    for (sequence, _), mass in engine_states(verifier, model, length=length, block_size=block_size).items():
        out[sequence] += mass
    return out


def engine_states(
    verifier: Any, model: Model, *, length: int, block_size: int
) -> dict[tuple[tuple[int, ...], Hashable], Any]:
    """Exact law of (first T tokens, the rule's state after the call that reached T), as {(tokens, state): mass}.

    The last call runs to its end, so its state counts what it committed beyond T. Raises as `engine_law`.
    """
    _check(verifier, block_size, length)
    table = as_table(model, length + block_size)
    known: dict[tuple[int, Hashable], list[Commit]] = {}
    done: dict[tuple[tuple[int, ...], Hashable], Any] = defaultdict(lambda: 0 * _one(table))
    open_: dict[tuple[tuple[int, ...], Hashable], Any] = {((), verifier_start(verifier)): _one(table)}
    while open_:
        shortest = min(len(sequence) for sequence, _ in open_)
        batch = {key: mass for key, mass in open_.items() if len(key[0]) == shortest}
        for (sequence, state), mass in batch.items():
            del open_[sequence, state]
            at = (_walk(table, sequence), state)
            if at not in known:
                _check_cost(len(known) + 1, table, block_size)
                known[at] = _commits(verifier, table, *at, block_size)
            for commit, weight, after in known[at]:
                grown = (*sequence, *commit)[:length]
                into = done if len(grown) == length else open_
                into[grown, after] = into.get((grown, after), 0) + mass * weight
    return dict(done)


def _check_cost(pairs: int, table: Tabular, block_size: int) -> None:
    if pairs * table.vocab_size**block_size > BLOCK_CAP:
        raise CostError(
            f"{pairs} (context, state) pairs times {table.vocab_size}^{block_size} drafts exceed BLOCK_CAP = {BLOCK_CAP}"
        )


def _commits(verifier: Any, table: Tabular, context: int, state: Hashable, block_size: int) -> list[Commit]:
    """Everything one call can commit from (context, state), merged over drafts and verdicts."""
    total: dict[tuple[tuple[int, ...], Hashable], Any] = defaultdict(lambda: 0 * _one(table))
    for block, weight in _draft_blocks(verifier, table, context, block_size):
        mass: Any = 0
        for probability, accepted, following, after in verifier.outcomes(block, state):
            mass += probability
            for y in np.flatnonzero(np.asarray(following)):
                commit = (*(int(x) for x in block.tokens[:accepted]), int(y))
                total[commit, after] += weight * probability * following[y]
        if abs(mass - 1) > 1e-9:
            raise DataError(f"outcomes of {type(verifier).__name__} on drafts {block.tokens.tolist()} sum to {mass}")
    return [(commit, mass, after) for (commit, after), mass in total.items()]


def _draft_blocks(verifier: Any, table: Tabular, context: int, block_size: int) -> Iterator[tuple[Block, Any]]:
    """Every block of drafts with its probability; drafts of probability 0 are left out."""
    law = drafted(verifier, table.target, table.draft)
    for tokens in product(range(table.vocab_size), repeat=block_size):
        rows, weight = [context], _one(table)
        for x in tokens:
            weight = weight * law[rows[-1], x]
            if weight == 0:
                break
            rows.append(int(table.step(rows[-1], x)))
        else:
            yield Block(np.array(tokens), table.target[rows], table.draft[rows[:-1]]), weight


def _walk(table: Tabular, tokens: tuple[int, ...]) -> int:
    context = table.initial
    for x in tokens:
        context = int(table.step(context, x))
    return context


def _continuations(table: Tabular, context: int, length: int) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every continuation of `length` target tokens with its probability."""
    if length == 0:
        yield (), _one(table)
        return
    for x in np.flatnonzero(table.target[context]):
        mass = table.target[context, x]
        if length == 1:
            yield (int(x),), mass
            continue
        for rest, more in _continuations(table, int(table.step(context, int(x))), length - 1):
            yield (int(x), *rest), mass * more


def verifier_start(verifier: Any) -> Any:
    """The state a request starts with; None for rules without `start`."""
    start = getattr(verifier, "start", None)
    return None if start is None else start()


def _one(table: Tabular) -> Any:
    return Fraction(1) if exact_table(table) else 1.0


def _check(verifier: Any, block_size: int, length: int) -> None:
    check_sizes(length, block_size)
    if "outcomes" not in supports(verifier):
        raise UsageError(f"{type(verifier).__name__} offers no outcomes(block, state): its block law cannot be exact")
