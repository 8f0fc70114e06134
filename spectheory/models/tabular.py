"""Target/draft pairs as tables: one row of each law per context. Small enough to enumerate, and Markov at any horizon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import Array, align, is_rational
from ..errors import CostError, DataError, UsageError
from ..pmf import check_ids, validate
from ..protocols import Model

# A prefix tree with more rows than this is not unrolled.
UNROLL_CAP = 2**20


@dataclass(frozen=True)
class Tabular:
    """A model of order m over V tokens: `target` and `draft` (S, V), row s for context s, S = V**m (order 0: one row).

    A context is the base-V number of the last m tokens, the newest least significant, so token x leads from s to
    (s V + x) mod S; `initial` is the row that a request starts in. `successors` (S, V) replaces that rule where contexts
    are something else (a prefix tree: `unroll`); -1 there marks a context that the table does not hold. Fractions stay
    exact if both tables are exact. Raises DataError for rows that are not laws or an `initial` that is no row.
    """

    target: Array
    draft: Array
    initial: int = 0
    successors: Array | None = None
    order: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        target, draft = align(validate(self.target, "target"), validate(self.draft, "draft"))
        if target.ndim != 2 or target.shape != draft.shape:
            raise DataError(f"target and draft must be tables (S, V) of one shape, not {target.shape}, {draft.shape}")
        rows, size = target.shape
        if self.successors is None:
            object.__setattr__(self, "order", _order(rows, size))
            successors = (np.arange(rows)[:, None] * size + np.arange(size)) % rows
        else:
            successors = np.asarray(self.successors)
            if successors.shape != target.shape or successors.min() < -1 or successors.max() >= rows:
                raise DataError(f"successors must be (S, V) = {target.shape} row numbers in [-1, {rows})")
        if not 0 <= self.initial < rows:
            raise DataError(f"the initial context {self.initial} is not one of the {rows} rows")
        for name, value in (("target", target), ("draft", draft), ("successors", successors)):
            object.__setattr__(self, name, value)

    @property
    def vocab_size(self) -> int:
        return int(self.target.shape[1])

    def contexts(self, prefixes: Array) -> Array:
        """Row numbers (n,) of prefixes (n, t). Raises DataError for ids out of range and contexts not in the table."""
        prefixes = check_ids(np.asarray(prefixes, dtype=np.int64), self.vocab_size, "prefix token")
        state = np.full(len(prefixes), self.initial)
        for t in range(prefixes.shape[1]):
            state = self.step(state, prefixes[:, t])
        return state

    def step(self, contexts: Array, tokens: Array) -> Array:
        """The contexts that `tokens` lead to. Raises DataError for one that the table does not hold."""
        following = self.successors[contexts, tokens]  # type: ignore[index]
        if (following < 0).any():
            at = np.flatnonzero(np.atleast_1d(following) < 0)[0]
            s, x = np.broadcast_arrays(contexts, tokens)
            raise DataError(
                f"the context after token {np.atleast_1d(x)[at]} in row {np.atleast_1d(s)[at]} is unreachable: the table does not hold it"
            )
        return following

    def laws(self, prefixes: Array) -> tuple[Array, Array]:
        """`prefixes` (n, t) -> target (n, V) and draft (n, V)."""
        state = self.contexts(prefixes)
        return self.target[state], self.draft[state]

    def sample(self, n: int, length: int, rng: np.random.Generator) -> Array:
        """`n` sequences (n, length) drawn from the target."""
        if length < 1:
            raise UsageError(f"length must be >= 1, not {length}")
        cumulative = np.cumsum(self.target.astype(np.float64), axis=1)
        state, out = np.full(n, self.initial), np.empty((n, length), dtype=np.int64)
        for t in range(length):
            u = rng.random(n) * cumulative[state, -1]
            out[:, t] = (cumulative[state] <= u[:, None]).sum(axis=1)
            if t + 1 < length:
                state = self.step(state, out[:, t])
        return out


def _order(rows: int, size: int) -> int:
    """m with size**m = rows. Raises DataError if there is none."""
    m, count = 0, 1
    while count < rows and size > 1:
        m, count = m + 1, count * size
    if count != rows:
        raise DataError(f"{rows} rows over {size} tokens: an order-m table has V**m rows")
    return m


def random_tabular(
    rng: np.random.Generator, vocab_size: int, order: int = 0, concentration: float = 1.0, closeness: float = 0.0
) -> Tabular:
    """A random model: Dirichlet(`concentration`) rows; draft = `closeness` target + (1 - `closeness`) fresh rows.

    `closeness` 0 draws the draft independently, 1 makes it the target. Small `concentration` gives peaked rows.
    """
    rows = vocab_size**order
    target, fresh = rng.dirichlet(np.full(vocab_size, concentration), size=(2, rows))
    return Tabular(target, closeness * target + (1 - closeness) * fresh)


def merge_tokens(law: Array, groups: Array) -> Array:
    """Add up the mass of merged tokens: `law` (..., V), `groups` (V,) of group numbers 0..G-1 -> (..., G).

    Merging is data processing: TV, KL and Hellinger distance of two laws merged alike never exceed those of the laws
    themselves. So the merged pair (output law, target) bounds the deviation from below, and the merged pair (target,
    draft) bounds the acceptance of the standard rule from above. A rule RUN on merged laws is a different rule: no
    order relation (see docs/theory/sequence.md). Raises DataError for groups that do not number the vocabulary.
    """
    groups = np.asarray(groups)
    law = np.asarray(law)
    if groups.shape != law.shape[-1:] or groups.min() < 0:
        raise DataError(f"groups must be ({law.shape[-1]},) numbers from 0, one a token, not of shape {groups.shape}")
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    if len(np.unique(groups)) != groups.max() + 1:
        raise DataError("groups must use every number from 0 to their largest")
    return np.add.reduceat(law[..., order], starts, axis=-1)


def coarse_tabular(p: Array, q: Array, groups: Array, previous: Array | None = None, initial: int = 0) -> Tabular:
    """Recorded rows `p`, `q` (n, V) as a small model over groups of tokens (`merge_tokens`).

    Without `previous`, order 0: the mean merged row. With `previous` (n,), the ids before each row, order 1: the mean
    over the rows whose previous token lies in the group; a group never seen gets the mean of all rows. Means keep the
    inequalities of `merge_tokens` (joint convexity): TV of a coarse row pair <= mean TV of the rows behind it. With the
    rule's OUTPUT law passed as `q` and a rule that accepts everything, a coarse row's deviation thus bounds the mean
    recorded deviation from below. Raises DataError for rows that are not laws or that do not match.
    """
    p, q = validate(p, "p"), validate(q, "q")
    merged_p, merged_q = merge_tokens(p, groups), merge_tokens(q, groups)
    if previous is None:
        return Tabular(merged_p.mean(axis=0)[None], merged_q.mean(axis=0)[None], initial)
    previous = check_ids(previous, p.shape[-1], "previous token")
    if previous.shape != (len(p),):
        raise DataError(f"previous must hold one id a row: ({len(p)},), not {previous.shape}")
    context = np.asarray(groups)[previous]
    target, draft = (
        np.stack([m[context == g].mean(axis=0) if (context == g).any() else m.mean(axis=0) for g in range(m.shape[1])])
        for m in (merged_p, merged_q)
    )
    return Tabular(target, draft, initial)


def unroll(model: Model, length: int, cap: int = UNROLL_CAP) -> Tabular:
    """Any small model as a table over its prefix tree, for horizons up to `length` tokens: row 0 is the empty prefix.

    Raises CostError if the tree has more than `cap` rows, DataError if the model's rows are not laws.
    """
    size = model.vocab_size
    rows = sum(size**t for t in range(length))
    if rows > cap:
        raise CostError(f"unrolling {length} tokens over {size} takes {rows} rows, above the cap of {cap}")
    tables: list[tuple[Any, Any]] = []
    prefixes = np.zeros((1, 0), dtype=np.int64)
    for t in range(length):
        tables.append(model.laws(prefixes))
        if t + 1 < length:
            prefixes = np.concatenate(
                [np.repeat(prefixes, size, axis=0), np.tile(np.arange(size), len(prefixes))[:, None]], axis=1
            )
    target, draft = (np.concatenate([np.asarray(pair[i]) for pair in tables]) for i in (0, 1))
    children = np.arange(rows)[:, None] * size + 1 + np.arange(size)
    return Tabular(target, draft, 0, np.where(children < rows, children, -1))


def as_table(model: Any, length: int) -> Tabular:
    """The model itself if it is tabular, else its prefix tree up to `length` tokens (`unroll`)."""
    return model if isinstance(model, Tabular) else unroll(model, length)


def exact_table(model: Tabular) -> bool:
    """True if the tables hold Fractions, so that everything derived by arithmetic is exact."""
    return is_rational(model.target)
