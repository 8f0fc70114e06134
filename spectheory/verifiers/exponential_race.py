"""ERSD: target and draft run exponential races on the same noise; a draft is accepted iff it wins the target's race too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import array_api_compat
import numpy as np

from ..arrays import Array, align, namespace, ratio, to_law, to_numpy, total, zeros_like
from ..errors import CostError, DataError, UsageError
from ..pmf import race_agreement, race_joint
from ..protocols import Block, Verdict
from .token import JOINT_CAP, TokenRule, laws_of


@dataclass(frozen=True)
class ExponentialRace(TokenRule):
    """Y = argmin E / p and X = argmin E / q on shared noise E ~ Exp(1)^V: lossless, whatever the drafter (theorem E1).

    The rule as seen by the engine (`acceptance`, `residual`, `joint`) is the law of (X, Y); with the noise in hand use
    `race`, `race_list` and `race_tree`. `k` is the draft budget (nodes of a tree) that an audit assumes; raises
    UsageError if negative. Source: 2504.15475.
    """

    k: int = 16
    residual_depends_on_rejected: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.k != int(self.k) or self.k < 0:
            raise UsageError(f"k must be a whole number >= 0 of drafted tokens, not {self.k}")

    def acceptance(self, p: Array, q: Array) -> Array:
        """P(Y = x | X = x), (..., V); 1 where q = 0: such a token is never drafted first."""
        a, b = _numpy_pair(p, q)
        return _like(p, ratio(race_agreement(a, b), b + 0 * a, 1))

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        """P(Y = y | X = rejected, Y != X), (V,), of one pair of laws (V,); `p` itself where nothing can be rejected.

        Without `rejected`, averaged over the rejected token. Raises CostError above V = 64.
        """
        a, b = _numpy_pair(p, q)
        if rejected is None:
            law = self.correction(a, b)
        else:
            law = self.joint(a, b)[int(rejected)].copy()
            law[int(rejected)] = 0 * law[0]
        mass = total(law, keepdims=True)
        return _like(p, np.where(mass > 0, ratio(law, mass + 0 * law, 0), a))

    def correction(self, p: Array, q: Array) -> Array:
        """P(Y = y, X != Y) = p - P(X = Y = y), (..., V): no joint law is needed."""
        a, b = _numpy_pair(p, q)
        left = a - race_agreement(a, b)
        return _like(p, np.maximum(left, zeros_like(left)))

    def joint(self, p: Array, q: Array) -> Array:
        """P(X = x, Y = y), (..., V, V): row drafted, column emitted. Exact on Fractions. Raises CostError above V = 64."""
        a, b = np.broadcast_arrays(*_numpy_pair(p, q))
        size = a.shape[-1]
        if size > JOINT_CAP:
            raise CostError(f"the joint law of two races costs V^4 = {size}^4 operations (cap: V = {JOINT_CAP})")
        rows = [race_joint(x, y) for x, y in zip(a.reshape(-1, size), b.reshape(-1, size))]
        return _like(p, np.array(rows, dtype=a.dtype).reshape(*a.shape, size))

    def race(self, block: Block, noise: Array) -> Verdict:
        """Verify a drafted chain with the noise (K + 1, V) that drafted it: emit argmin E / p until it differs from the draft.

        The committed tokens depend on `noise` and p alone: any drafter yields a prefix of the same sequence.
        """
        p, _ = laws_of(block)
        winners = race_winner(p, _checked_noise(noise, p))
        agree = winners[:-1] == block.tokens
        accepted = int(np.argmin(np.append(agree, False)))
        return Verdict(accepted, winners[: accepted + 1])

    def race_list(self, p: Array, drafts: Array, noise: Array) -> Verdict:
        """One position, several drafts (m,) in race order: accepted 1 if the target's winner is among them, else 0."""
        winner = int(race_winner(p, noise))
        return Verdict(int(winner in np.asarray(drafts)), np.array([winner]))

    def race_tree(self, parent: Array, tokens: Array, p: Array, noise: Array) -> Verdict:
        """Verify a drafted tree: `parent`, `tokens` (k,), -1 for the root's children; `p` (k + 1, V), row 0 the root's.

        Row v + 1 is the target's law after node v; `noise` (depth + 1, V), one row a depth. Walks down while the
        target's winner is a drafted child.
        """
        p, noise = np.asarray(p), np.asarray(noise)
        if p.shape[0] != len(tokens) + 1:
            raise DataError(f"a tree of {len(tokens)} nodes needs {len(tokens) + 1} target laws, not {p.shape[0]}")
        child = {(int(a), int(x)): v for v, (a, x) in enumerate(zip(parent, tokens))}
        node, out = -1, list[int]()
        while True:
            winner = int(race_winner(p[node + 1], noise[len(out)]))
            out.append(winner)
            if (node, winner) not in child:
                return Verdict(len(out) - 1, np.array(out))
            node = child[node, winner]


def race_winner(p: Array, noise: Array) -> Array:
    """argmin E / p over the last axis, (...): a token without mass never wins; ties go to the lowest index."""
    return np.argmin(_arrivals(p, noise), axis=-1)


def draft_order(q: Array, noise: Array) -> Array:
    """All tokens by increasing E / q, (..., V); tokens without mass come last, in the order of their index."""
    return np.argsort(_arrivals(q, noise), axis=-1, kind="stable")


def draft_rank(q: Array, noise: Array, token: Array) -> Array:
    """The place from 1 of `token` (...) in `draft_order`, (...), without sorting."""
    arrivals, token = _arrivals(q, noise), np.asarray(token)[..., None]
    own = np.take_along_axis(arrivals, token, axis=-1)
    tied = (arrivals == own) & (np.arange(arrivals.shape[-1]) < token)
    return 1 + ((arrivals < own) | tied).sum(axis=-1)


def draft_tree(parent: Array, rank: Array, law: Callable[[Array], Array], noise: Array) -> Array:
    """Tokens (k,) of a tree given by `parent` and `rank` (1 is the first draft): each node the `rank`-th in the race

    of the draft law `law(prefix)` (V,) after its parent, on the noise (depth, V) of its depth. Parents precede children.
    """
    prefixes: dict[int, tuple[int, ...]] = {-1: ()}
    orders: dict[int, Array] = {}
    out = np.empty(len(parent), dtype=np.int64)
    for v, (above, r) in enumerate(zip(np.asarray(parent).tolist(), np.asarray(rank).tolist())):
        if above not in orders:
            prefix = prefixes[above]
            orders[above] = draft_order(law(np.array(prefix, dtype=np.int64)), noise[len(prefix)])
        out[v] = orders[above][r - 1]
        prefixes[v] = (*prefixes[above], int(out[v]))
    return out


def _arrivals(law: Array, noise: Array) -> Array:
    """E / law with infinity where the law has no mass."""
    law, noise = np.broadcast_arrays(np.asarray(law, dtype=np.float64), np.asarray(noise, dtype=np.float64))
    return np.divide(noise, law, out=np.full(law.shape, np.inf), where=law > 0)


def _checked_noise(noise: Array, p: Array) -> Any:
    noise = np.asarray(noise, dtype=np.float64)
    if noise.shape != p.shape or not bool((noise >= 0).all()):
        raise DataError(
            f"race noise must be non-negative, one number a position and token {p.shape}, not {noise.shape}"
        )
    return noise


def _numpy_pair(p: Array, q: Array) -> tuple[Array, Array]:
    return align(to_numpy(to_law(p)), to_numpy(to_law(q)))


def _like(p: Array, x: Array) -> Array:
    """The NumPy result `x` in the namespace and on the device of `p`."""
    if not array_api_compat.is_torch_array(p):
        return x
    return namespace(p).asarray(x, device=array_api_compat.device(p))
