"""The engine of a token verifier as a finite Markov chain over (context, j), and sums along it at any horizon.

j = drafts accepted so far in this block of K; at j = K the bonus token is drawn from the target. Every bound of
`theory.sequence` has the form sum_{t < T} v M^t g: a transfer matrix M, a gain g per state, a start v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, maximum, ratio, to_float, total, where, zeros_like
from ..errors import CostError, DataError, UsageError
from ..protocols import depends_on_rejected

# Contexts times (K + 1): the transfer matrices are dense.
STATE_CAP = 4096


@dataclass(frozen=True)
class Chain:
    """The engine over `length` tokens by context, (S, V) each: target `p`, output `out` = `accepted` + `corrected`."""

    p: Array
    out: Array
    accepted: Array
    corrected: Array
    successors: Array
    initial: int
    length: int
    block_size: int

    @property
    def size(self) -> int:
        """Number of states (context, j): S (K + 1)."""
        return len(self.p) * (self.block_size + 1)


def chain(verifier: Any, model: Any, *, length: int, block_size: int) -> Chain:
    """The Markov chain behind the engine of a token verifier on a tabular `model` (target, draft, successors, initial).

    Raises UsageError for sizes below 1, a model without tables or a rule without acceptance, CostError above STATE_CAP
    states, DataError if the engine can reach, within the horizon, a context that the table does not hold.
    """
    if length < 1 or block_size < 1:
        raise UsageError(f"length and block_size must be >= 1, not {length} and {block_size}")
    if not hasattr(model, "successors"):
        raise UsageError(f"{type(model).__name__} is not tabular: models.unroll makes a small model so")
    if not hasattr(verifier, "acceptance"):
        raise UsageError(f"{type(verifier).__name__} has no acceptance: these bounds are for token verifiers")
    p, q = (to_float(x) for x in (model.target, model.draft))
    if len(p) * (block_size + 1) > STATE_CAP:
        raise CostError(f"{len(p)} contexts times K + 1 = {block_size + 1} exceed STATE_CAP = {STATE_CAP}")
    accepted, corrected = (to_float(np.asarray(x)) for x in emitted_weights(verifier, p, q))
    return closed(p, accepted, corrected, model.successors, model.initial, length, block_size)


def closed(
    p: Array, accepted: Array, corrected: Array, successors: Array, initial: int, length: int, block_size: int
) -> Chain:
    """A Chain from its weights, once every context it can reach before its last token is known to be in the table.

    Raises DataError naming the row and token that lead outside the table.
    """
    c = Chain(p, accepted + corrected, accepted, corrected, np.maximum(successors, 0), initial, length, block_size)
    if (successors < 0).any() and length > 1:
        live = reached(start(c), transfer(c, c.out + c.p, c.p), length - 1).reshape(len(p), -1).any(axis=1)
        lost = live[:, None] & (successors < 0) & ((c.out > 0) | (p > 0))
        if lost.any():
            s, x = np.argwhere(lost)[0]
            raise DataError(f"token {x} in row {s} leads to an unreachable context: the table does not hold it")
    return c


def emitted_weights(verifier: Any, p: Array, q: Array) -> tuple[Array, Array]:
    """(d A, sum_x d(x) (1 - A(x)) r(. | x)), (..., V) each: mass emitted by accepting, and by correcting."""
    if hasattr(verifier, "joint"):
        pairs = np.stack([np.asarray(verifier.joint(a, b), dtype=np.float64) for a, b in zip(p, q)])
        kept = np.einsum("...ii->...i", pairs)
        return kept, pairs.sum(axis=-2) - kept
    d = verifier.drafted(p, q) if hasattr(verifier, "drafted") else q
    accept = verifier.acceptance(p, q)
    if hasattr(verifier, "correction"):
        return d * accept, maximum(verifier.correction(p, q), 0)
    if not depends_on_rejected(verifier):
        return d * accept, total(d * (1 - accept), keepdims=True) * verifier.residual(p, q)
    corrected = zeros_like(p)
    for x in range(p.shape[-1]):
        reject = (d * (1 - accept))[..., x : x + 1]
        corrected = corrected + where(reject > 0, reject * verifier.residual(p, q, x), zeros_like(p))
    return d * accept, corrected


def transfer(c: Chain, drafted: Array, bonus: Array) -> Array:
    """Matrix over (context, j): `drafted` (S, V) is spread by the engine's kernel over j + 1 and 0, `bonus` goes to 0.

    The kernel is accepted / out and corrected / out, and 1 on j = 0 where out = 0 (the convention of Q2).
    """
    contexts, width = len(c.p), c.block_size + 1
    up = ratio(c.accepted, c.out, 0)
    parts = [_by_successor(c, w) for w in (drafted * up, drafted * (1 - up), bonus)]
    m = np.zeros((contexts, width, contexts, width))
    for j in range(c.block_size):
        m[:, j, :, j + 1], m[:, j, :, 0] = parts[0], parts[1]
    m[:, c.block_size, :, 0] = parts[2]
    return m.reshape(c.size, c.size)


def _by_successor(c: Chain, weight: Array) -> Array:
    """(S, V) weights added up by the context they lead to, (S, S)."""
    out = np.zeros((len(c.p), len(c.p)))
    np.add.at(out, (np.arange(len(c.p))[:, None], c.successors), weight)
    return out


def gains(c: Chain, per_context: Array) -> Array:
    """A gain per state (context, j): `per_context` (S,) while drafting, 0 at the bonus."""
    g = np.repeat(per_context[:, None], c.block_size + 1, axis=1)
    g[:, c.block_size] = 0
    return g.ravel()


def start(c: Chain) -> Array:
    """The law over (context, j) that a request starts from, (S (K + 1),): all mass on (initial, 0)."""
    v = np.zeros(c.size)
    v[c.initial * (c.block_size + 1)] = 1
    return v


def accumulate(c: Chain, matrix: Array, gain: Array) -> float:
    """sum_{t < T} start matrix^t gain, by doubling, rounded up: all terms are >= 0, so rounding errors are relative.

    An infinite gain makes the sum infinite if its state is reached in time.
    """
    v, steps = start(c), c.length
    if not np.isfinite(gain).all():
        if (reached(v, matrix, steps) & np.isinf(gain)).any():
            return math.inf
        gain = np.where(np.isinf(gain), 0, gain)
    value, power, partial, left = 0.0, matrix, gain, steps  # partial = sum_{t < 2^i} matrix^t gain
    while left:
        if left & 1:
            value, v = value + float(v @ partial), v @ power
        left >>= 1
        if left:
            partial, power = partial + power @ partial, power @ power
    return value * (1 + min(1.0, 2.0 * steps * (c.size + 4) * np.finfo(float).eps))


def reached(v: Array, matrix: Array, steps: int) -> Array:
    """States that have weight before some token t < steps."""
    seen = v > 0
    for _ in range(min(steps - 1, len(v))):
        more = seen | ((seen @ (matrix > 0)) > 0)
        if (more == seen).all():
            break
        seen = more
    return seen


def rounded_down(value: float, c: Chain) -> float:
    """A sum of `accumulate` with its rounding allowance taken off twice: below the true sum."""
    return value * max(0.0, 1 - min(1.0, 6.0 * c.length * (c.size + 4) * np.finfo(float).eps))


def lumped(p: Array, accepted: Array, corrected: Array) -> tuple[Array, Array, Array]:
    """Weights (V,) of one context with tokens of equal ratio out / p merged (to 13 digits in the log), (m,) each.

    All of Q2..Q7 depend on the weights only through sums over such tokens, so they lose nothing but the 13th digit.
    Under NSD all tokens outside the nucleus fall in two classes (N3), so real rows shrink a hundredfold.
    """
    out = accepted + corrected
    live = (out > 0) | (p > 0)
    p, out, accepted = p[live], out[live], accepted[live]
    with np.errstate(divide="ignore"):
        key = np.round(np.log(out) - np.log(p), 13)
    at = np.unique(key, return_inverse=True)[1]
    merged = [np.bincount(at, w) for w in (p, accepted, out - accepted)]
    return merged[0], merged[1], merged[2]


def exogenous(rows: Sequence[tuple[Array, Array, Array]], *, length: int, block_size: int) -> Chain:
    """The chain of an engine whose context at each token is one of `rows` (p, accepted, corrected), drawn at random.

    The draw ignores what was generated and is seen: a token of this chain is (row, token), so TV of its sequences is
    that of recorded rows met in random order. One context, so every horizon costs the same. Raises DataError without rows.
    """
    if not rows:
        raise DataError("there are no rows with full laws")
    p, accepted, corrected = (np.concatenate([r[i] for r in rows])[None] / len(rows) for i in range(3))
    zero = np.zeros(p.shape, dtype=np.int64)
    return closed(p, accepted, corrected, zero, 0, length, block_size)
