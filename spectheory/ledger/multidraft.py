"""Checks of the multi-draft values (E4): linear programmes, rank and index laws, and K-SEQ by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import exact
from ..testing import lists
from ..theory import multidraft
from .checks import check


def transport(p: Any, sets: dict[int, Any]) -> float:
    """The optimal multi-draft acceptance as a linear programme: couple the drafted set S (a bit mask) with y ~ p."""
    from scipy.optimize import linprog

    masks, size = list(sets), len(p)
    cost = [-float(s >> y & 1) for s in masks for y in range(size)]
    rows = np.kron(np.eye(len(masks)), np.ones(size))
    columns = np.kron(np.ones(len(masks)), np.eye(size))
    right = [*(float(sets[s]) for s in masks), *p.astype(float)]
    plan: Any = linprog(cost, A_eq=np.vstack([rows, columns]), b_eq=right, method="highs").x
    return -float(np.dot(cost, plan))


def iid_sets(q: Any, m: int) -> dict[int, Any]:
    """Law of the set of m i.i.d. drafts, by bit mask."""
    law = {0: 1 + 0 * q[0]}
    for _ in range(m):
        following: dict[int, Any] = {}
        for s, w in law.items():
            for i in np.flatnonzero(q > 0):
                following[s | 1 << int(i)] = following.get(s | 1 << int(i), 0) + w * q[i]
        law = following
    return law


def race_sets(q: Any, m: int) -> dict[int, Any]:
    """Law of the set of the first m tokens of the draft order, by bit mask: summed over all draft orders."""
    law: dict[int, Any] = {}

    def walk(s: int, w: Any, left: int) -> None:
        unused = [i for i in range(len(q)) if not s >> i & 1]
        rest = [i for i in unused if q[i] > 0]
        if left == 0 or not unused:
            law[s] = law.get(s, 0) + w
            return
        if not rest:  # tokens without draft mass, by index
            walk(s | 1 << unused[0], w, left - 1)
        for i in rest:
            walk(s | 1 << i, w * q[i] / sum(q[j] for j in rest), left - 1)

    walk(0, 1 + 0 * q[0], m)
    return law


check(
    "E4.index",
    instances=lists(),
    claimed=lambda i: multidraft.index_acceptance(*i),
    second=lambda i: sum(exact.rank_law(i[0], i[1])[: i[2]]),
    mutated=lambda i: multidraft.optimal_wor(*i),
    tolerance=0,
)
check(
    "E4.list",
    instances=lists(),
    claimed=lambda i: multidraft.list_bound(*i),
    second=lambda i: sum(exact.index_law(*i)),
    mutated=lambda i: multidraft.optimal_wor(*i),
    tolerance=0,
)
check(
    "E4.optimal",
    instances=lists(3),
    claimed=lambda i: float(multidraft.optimal_iid(*i)),
    second=lambda i: transport(i[0], iid_sets(i[1], i[2])),
    mutated=lambda i: float(multidraft.optimal_iid(i[0], i[1], i[2] + 1)),
    tolerance=1e-8,
)
check(
    "E4.wor",
    instances=lists(3),
    claimed=lambda i: float(multidraft.optimal_wor(*i)),
    second=lambda i: transport(i[0], race_sets(i[1], i[2])),
    mutated=lambda i: float(multidraft.optimal_iid(*i)),
    tolerance=1e-8,
)


def least_valid_kseq(p: Any, q: Any, m: int) -> float:
    """K-SEQ's acceptance by bisecting rho on the pointwise condition: the law of accepted tokens must not exceed P."""
    p, q = p.astype(float), q.astype(float)

    def accepted_law(rho: float) -> Any:
        one = np.minimum(q, p / rho)
        return one * sum((1 - one.sum()) ** n for n in range(m))

    low, high = 1.0, float(m)
    if (accepted_law(low) <= p + 1e-13).all():
        return float(accepted_law(low).sum())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if (accepted_law(middle) <= p + 1e-14).all() else (middle, high)
    return float(accepted_law(high).sum())


check(
    "E4.kseq",
    instances=lists(),
    claimed=lambda i: multidraft.kseq_acceptance(*i),
    second=lambda i: least_valid_kseq(*i),
    mutated=lambda i: float(multidraft.optimal_iid(*i)),
    tolerance=1e-8,
)
