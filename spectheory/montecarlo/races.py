"""Exponential races, simulated for many requests at once: one position (chain and list), whole trees, the standard rule.

Laws come from a callable `laws(prefixes (n, t)) -> p (n, V), q (n, V)`: a model's own `laws`, or `rows_as_laws` of a
recorded block. Target and draft share the noise of a position; draft, acceptance and residual draws of the standard
rule come from streams of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import UsageError
from ..pmf import residual, validate_pair
from ..results import Interval
from ..verifiers.exponential_race import draft_rank, race_winner
from .intervals import empirical_bernstein
from .simulate import _draw
from .streams import streams

Laws = Callable[[Array], tuple[Array, Array]]
CHUNK = 1 << 22  # noise numbers held at once


@dataclass(frozen=True)
class Walks:
    """`tokens` (n, depth + 1) emitted by one call, -1 behind the last one; `length` (n,) how many they are."""

    tokens: Array
    length: Array

    def mean_length(self, alpha: float = 1e-3) -> Interval:
        """E[tokens per call] with an interval of level 1 - `alpha`."""
        return empirical_bernstein(self.length, alpha, (1.0, float(self.tokens.shape[1])))


def simulate_ranks(P: Array, Q: Array, n: int, seed: int = 0) -> tuple[Array, Array]:
    """(ranks R (n,) from 1, winning tokens Y (n,)) of `n` races of one pair of laws (V,). Raises DataError.

    A list of m drafts accepts iff R <= m; a chain's position accepts iff R = 1.
    """
    p, q = (np.asarray(x, dtype=np.float64) for x in validate_pair(P, Q))
    rng, out = streams(seed, "race")["race"], []
    for at in range(0, n, rows := max(1, CHUNK // len(p))):
        out.append(_race(p, q, rng.standard_exponential((min(rows, n - at), len(p)))))
    return np.concatenate([r for r, _ in out]), np.concatenate([y for _, y in out])


def _race(p: Any, q: Any, noise: Any) -> tuple[Any, Any]:
    """(rank, winner) of races on `noise` (n, V); laws (V,) or (n, V)."""
    winner = race_winner(p, noise)
    return draft_rank(q, noise, winner), winner


def rows_as_laws(p: Array, q: Array) -> Laws:
    """Recorded rows (T, V) as laws that depend on the position only: row t after t tokens.

    Raises DataError if they are no laws; drafting beyond the last row is a UsageError.
    """
    p, q = validate_pair(p, q)

    def laws(prefixes: Array) -> tuple[Array, Array]:
        n, t = prefixes.shape
        if t >= len(p):
            raise UsageError(f"{len(p)} recorded rows do not reach position {t}: draft a shallower tree")
        return np.broadcast_to(p[t], (n, p.shape[1])), np.broadcast_to(q[t], (n, q.shape[1]))

    return laws


def simulate_tree(laws: Laws, parent: Array, rank: Array, n: int, seed: int = 0) -> Walks:
    """`n` calls of ERSD with the tree (`parent`, `rank`) of ranks, as `theory.ersd.optimal_tree` gives it.

    A walk at a node goes on to its child of rank R, if that was drafted; the winning token is emitted either way. Parents
    come before children.
    """
    child = {(int(a), int(r)): v for v, (a, r) in enumerate(zip(parent, rank))}
    depth = [0] * len(parent)
    for v, a in enumerate(np.asarray(parent).tolist()):
        depth[v] = 1 if a < 0 else depth[a] + 1
    deepest = max(depth, default=0)
    tokens = np.full((n, deepest + 1), -1, dtype=np.int64)
    node, alive = np.full(n, -1), np.arange(n)
    rng = streams(seed, "race")["race"]
    for d in range(deepest + 1):
        r, winners = _step(laws, tokens[:, :d], alive, rng)
        tokens[alive, d] = winners
        node[alive] = [child.get(key, -2) for key in zip(node[alive].tolist(), r.tolist())]
        alive = alive[node[alive] >= 0]
        if not alive.size:
            break
    return Walks(tokens, (tokens >= 0).sum(axis=1))


def _step(laws: Laws, prefixes: Any, alive: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """(rank, winner) at the next position of the walks `alive`.

    Noise is drawn for every walk, so that what a seed emits does not depend on how far the drafter got (invariance).
    """
    size = np.shape(laws(prefixes[alive[:1]])[0])[1]
    rows, ranks, winners = max(1, CHUNK // size), [], []
    for at in range(0, len(prefixes), rows):
        noise = rng.standard_exponential((min(rows, len(prefixes) - at), size))
        here = alive[(alive >= at) & (alive < at + rows)]
        p, q = laws(prefixes[here])
        r, y = _race(np.asarray(p), np.asarray(q), noise[here - at])
        ranks.append(r)
        winners.append(y)
    return np.concatenate(ranks), np.concatenate(winners)


def simulate_chain(laws: Laws, k: int, n: int, seed: int = 0) -> Walks:
    """`n` calls of ERSD with a chain of `k` first drafts."""
    return simulate_tree(laws, np.arange(k) - 1, np.ones(k, dtype=np.int64), n, seed)


def simulate_standard(laws: Laws, k: int, n: int, seed: int = 0) -> Walks:
    """`n` calls of the standard rule ("GSD") with the same budget: a chain of `k` drafts, the bonus token at its end."""
    tokens = np.full((n, k + 1), -1, dtype=np.int64)
    rng, alive = streams(seed, "draft", "accept", "residual"), np.arange(n)
    for d in range(k + 1):
        p, q = (np.asarray(x) for x in laws(tokens[alive, :d]))
        if d == k:
            tokens[alive, d] = _draw_each(p, rng["residual"].random(len(alive)))
            break
        x = _draw_each(q, rng["draft"].random(len(alive)))
        each = np.arange(len(alive))
        accepted = rng["accept"].random(len(alive)) * q[each, x] < p[each, x]
        y = _draw_each(residual(p, q), rng["residual"].random(len(alive)))
        tokens[alive, d] = np.where(accepted, x, y)
        alive = alive[accepted]
        if not alive.size:
            break
    return Walks(tokens, (tokens >= 0).sum(axis=1))


def _draw_each(laws: Any, u: Any) -> Any:
    """One draw a row from laws (n, V), by inverse CDF."""
    if len(laws) and (laws == laws[:1]).all():
        return _draw(laws[:1], u[:, None])[:, 0]
    cumulative = np.cumsum(laws, axis=1)
    x = (cumulative <= (u * cumulative[:, -1])[:, None]).sum(axis=1)
    return np.minimum(x, laws.shape[1] - 1 - np.argmax(laws[:, ::-1] > 0, axis=1))
