"""An unbiased estimate of TV(P~, P) over T tokens for any model (theorem Q9), from sampled paths and their step laws.

TV = E_{x ~ P~}[(1 - P(x) / P~(x))_+] = E_{x ~ P}[(1 - P~(x) / P(x))_+]: means of variables in [0, 1]. P~ of a path comes from
the forward recursion over j, the drafts accepted so far in the block, which the tokens alone do not show.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array, is_rational
from ..errors import DataError, UsageError
from ..models.tabular import Tabular
from ..pmf import validate
from ..protocols import Model
from ..results import Interval
from ..verifiers.token import by_blocks, step_weights
from .sequences import confidence_sequence
from .streams import streams

SIDES = ("engine", "target")
Progress = Callable[[int, int], None]
# (prefixes, chance that the token is a verified one, rng) -> token, its accepted and corrected mass, its target mass
Draw = Callable[[Array, Array, np.random.Generator], tuple[Array, Array, Array, Array]]


@dataclass(frozen=True)
class SequenceEstimate:
    """TV(P~, P) at each of `horizons` (H,), from the same paths.

    `engine` and `target`: one Interval a horizon, from paths drawn from P~ and from P; `deviation`: what both say together,
    and that TV never falls with the horizon (Q8). All of them hold at once with probability >= 1 - `alpha`, whenever the
    sampling stopped. `values`: the variables, (paths, H) by side.
    """

    horizons: tuple[int, ...]
    engine: list[Interval]
    target: list[Interval]
    deviation: list[Interval]
    alpha: float
    values: dict[str, Array]


def estimate_sequence(
    verifier: Any,
    model: Model,
    *,
    horizons: Sequence[int],
    block_size: int,
    paths: int = 1024,
    half_width: float = 0.0,
    alpha: float = 1e-2,
    batch: int = 64,
    seed: int = 0,
    store: Path | None = None,
    progress: Progress | None = None,
) -> SequenceEstimate:
    """Estimate TV(P~, P) of a token rule at all `horizons` from at most `paths` paths of each law.

    Stops early once the interval at the longest horizon is at most +- `half_width`. `progress(done, total)` counts paths.
    With `store`, finished batches are kept there, and a rerun of the same request goes on from them. Batches draw from
    streams of their own, so the result depends on `seed` and `batch`, not on interruptions. Raises UsageError for sizes
    below 1 or a rule that decides by blocks, DataError for laws that are none or a store of another request.
    """
    horizons = tuple(sorted(set(horizons)))
    if not horizons or horizons[0] < 1 or min(block_size, paths, batch) < 1 or not 0 < alpha < 1:
        raise UsageError("horizons, block_size, paths and batch must be >= 1 and alpha in (0, 1)")
    if by_blocks(verifier) or not hasattr(verifier, "acceptance"):
        raise UsageError(f"{type(verifier).__name__} decides by blocks: the estimate is for token rules")
    request = f"{verifier!r} K={block_size} T={horizons} seed={seed} batch={batch} {_fingerprint(model)}"
    values = _load(store, request)
    while True:
        done = min(len(v) for v in values.values()) if values else 0
        if progress is not None:
            progress(done, paths)
        found = _summary(values, horizons, alpha) if values else None
        if found and (done >= paths or _half(found.deviation[-1]) <= half_width):
            return found
        size = min(batch, paths - done)
        for side in SIDES:
            rng = streams(seed, f"{side} {done}")[f"{side} {done}"]
            new = sample_values(verifier, model, horizons, block_size, batch, rng, side)[:size]
            values[side] = np.concatenate([values[side], new]) if side in values else new
        _save(store, request, values)


def sample_values(
    verifier: Any, model: Model, horizons: Sequence[int], block_size: int, n: int, rng: np.random.Generator, side: str
) -> Array:
    """(1 - ratio)_+ at each horizon for `n` paths, (n, H): paths from P~ ("engine", ratio P / P~) or P ("target", P~ / P)."""
    draw = _table_draws(verifier, model) if isinstance(model, Tabular) else _model_draws(verifier, model)
    prefixes = np.zeros((n, 0), dtype=np.int64)
    inside = np.zeros((n, block_size + 1))  # law of j given the path
    inside[:, 0] = 1
    log_ratio = np.zeros(n)  # ln P~(path) / P(path)
    out = np.empty((n, len(horizons)))
    for t in range(1, horizons[-1] + 1):
        drafting, bonus = inside[:, :-1].sum(axis=1), inside[:, -1]
        x, a, c, target = draw(prefixes, drafting if side == "engine" else 0 * drafting, rng)
        mass = drafting * (a + c) + bonus * target
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratio = log_ratio + np.log(mass) - np.log(target)
            moved = np.column_stack([drafting * c + bonus * target, inside[:, :-1] * a[:, None]]) / mass[:, None]
        inside = np.where(mass[:, None] > 0, moved, np.eye(block_size + 1)[0])  # a path lost to P~ has value 1 for good
        prefixes = np.column_stack([prefixes, x])
        if t in horizons:
            sign = log_ratio if side == "engine" else -log_ratio
            out[:, horizons.index(t)] = -np.expm1(-np.maximum(sign, 0))
    return out


def _model_draws(verifier: Any, model: Model) -> Draw:
    """Next tokens of any model: one call of `laws` a token."""

    def draw(prefixes: Array, drafting: Array, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
        p, q = (validate(x, name) for x, name in zip(model.laws(prefixes), ("p", "q")))
        accepted, corrected = step_weights(verifier, p, q)
        law = np.where(rng.random(len(p))[:, None] < drafting[:, None], accepted + corrected, p)
        cumulative = np.cumsum(law, axis=1)
        x = (cumulative <= (rng.random(len(p)) * cumulative[:, -1])[:, None]).sum(axis=1)
        x = np.minimum(x, law.shape[1] - 1 - (law[:, ::-1] > 0).argmax(axis=1))
        return x, *(w[np.arange(len(p)), x] for w in (accepted, corrected, p))

    return draw


def _table_draws(verifier: Any, table: Tabular) -> Draw:
    """Next tokens of a table: its cumulative laws are made once, row s shifted by s so that one search serves all rows."""
    weights = [_floats(w) for w in step_weights(verifier, table.target, table.draft)]
    p, size = _floats(table.target), table.vocab_size
    laws = (p, weights[0] + weights[1])
    shifted = []
    for law in laws:
        cumulative = np.cumsum(law, axis=1)
        shifted.append((cumulative / cumulative[:, -1:] + np.arange(len(law))[:, None]).ravel())
    last = [size - 1 - (law[:, ::-1] > 0).argmax(axis=1) for law in laws]

    def draw(prefixes: Array, drafting: Array, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
        context = table.contexts(prefixes)
        verified, u = rng.random(len(context)) < drafting, context + rng.random(len(context))
        found = np.where(verified, *(np.searchsorted(shifted[i], u, side="right") for i in (1, 0))) - context * size
        x = np.minimum(found, np.where(verified, last[1][context], last[0][context]))
        return x, weights[0][context, x], weights[1][context, x], p[context, x]

    return draw


def _floats(x: Array) -> Array:
    return x.astype(np.float64) if is_rational(x) else x


def _half(interval: Interval) -> float:
    return (interval.upper - interval.lower) / 2


def _summary(values: dict[str, Array], horizons: tuple[int, ...], alpha: float) -> SequenceEstimate:
    """Intervals by side at level alpha / (2 H) each, then their intersection, made monotone in the horizon."""
    share = alpha / (2 * len(horizons))
    sides = {side: [confidence_sequence(values[side][:, h], share) for h in range(len(horizons))] for side in SIDES}
    lows = np.maximum.accumulate([max(a.lower, b.lower) for a, b in zip(*sides.values())])
    highs = np.minimum.accumulate([min(a.upper, b.upper) for a, b in zip(*sides.values())][::-1])[::-1]
    source = "Q9, betting confidence sequences under both laws"
    both = []
    for h, (low, high) in enumerate(zip(lows, highs)):
        means = [float(values[side][:, h].mean()) for side in SIDES]
        low, high = (low, high) if low <= high else (high, low)  # the sides disagree: probability <= alpha
        both.append(Interval(float(low), sum(means) / 2, float(high), "statistical", alpha, source))
    level = [[Interval(i.lower, i.estimate, i.upper, i.kind, alpha, i.source) for i in s] for s in sides.values()]
    return SequenceEstimate(horizons, level[0], level[1], both, alpha, values)


def _fingerprint(model: Any) -> str:
    """What tells one model from another in a store: its tables, or its own `fingerprint`, or its type."""
    if hasattr(model, "target") and isinstance(model.target, np.ndarray):
        return hashlib.sha256(_floats(model.target).tobytes() + _floats(model.draft).tobytes()).hexdigest()[:16]
    return str(getattr(model, "fingerprint", type(model).__name__))


def _load(store: Path | None, request: str) -> dict[str, Array]:
    if store is None or not store.exists():
        return {}
    with np.load(store, allow_pickle=False) as data:
        if str(data["request"]) != request:
            raise DataError(f"{store} holds the paths of another request: {data['request']}")
        return {side: data[side] for side in SIDES}


def _save(store: Path | None, request: str, values: dict[str, Array]) -> None:
    if store is None:
        return
    store.parent.mkdir(parents=True, exist_ok=True)
    temporary = store.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.savez(file, request=np.array(request), **values)
    temporary.replace(store)
