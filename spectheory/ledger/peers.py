"""Checks of the order among list rules (E4): rank laws and recursive rejection against optima, greedy drafts by a programme."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any

import numpy as np

from .. import exact
from ..pmf import overlap
from ..testing import lists
from ..theory import multidraft, peers
from .checks import check
from .fixed_ersd import G4, G6, listed
from .multidraft import transport


def listed_rank(i: Any) -> Any:
    return sum(exact.rank_law(i[0], i[1])[: i[2]])


def drafts(q: Any) -> int:
    """The most drafts that can be drawn without replacement."""
    return int(sum(q > 0))


def drawable(p: Any, q: Any, n: int) -> Any:
    """(P, Q, m) on coarse laws, m cut to what Q can draw."""
    p, q, m = listed(p, q, n)
    return p, q, min(m, drafts(q))


DRAWABLE = lists().filter(lambda i: i[2] <= drafts(i[1]))


def greedy_sets(q: Any, m: int) -> dict[int, Any]:
    """Law of the drafted set by bit mask: the m - 1 likeliest tokens (lower index on ties) and one of the rest."""
    order = np.argsort(-q, kind="stable")
    top, rest = order[: m - 1], order[m - 1 :]
    mask = sum(1 << int(t) for t in top)
    return {mask | 1 << int(x): q[x] / sum(q[rest]) for x in rest if q[x] > 0}


check(
    "E4.order",
    instances=DRAWABLE,
    claimed=lambda i: peers.list_cap(*i),
    second=listed_rank,
    mutated=lambda i: multidraft.index_acceptance(*i),
    tolerance=0,
    golden=[((*G4, 2), None), ((*G6, 2), D(".9754684454799"))],
    pairs=drawable,
)
check(
    "E4.iid",
    instances=DRAWABLE,
    claimed=lambda i: peers.iid_cap(*i),
    second=listed_rank,
    mutated=lambda i: peers.list_cap(*i),
    tolerance=0,
    golden=[((*G6, 2), D(".8804622751218"))],
    pairs=drawable,
)
check(
    "E4.recursive",
    instances=lists(),
    claimed=lambda i: peers.recursive_cap(*i),
    second=lambda i: multidraft.recursive_rejection(i[0], i[1], i[2], True),
    mutated=lambda i: overlap(i[0], i[1]),
    tolerance=0,
    golden=[((*G4, 2), 1), ((*G6, 2), D(".8804622751218"))],
    pairs=listed,
)
check(
    "E4.recursive_wor",
    instances=lists(),
    claimed=lambda i: peers.recursive_wor_cap(*i),
    second=lambda i: multidraft.recursive_rejection(i[0], i[1], i[2], False),
    mutated=lambda i: overlap(i[0], i[1]),
    tolerance=0,
    golden=[((*G6, 2), D(".9754684454799"))],
    pairs=listed,
)
check(
    "E4.greedy",
    instances=lists(3).filter(lambda i: i[2] <= drafts(i[1])),
    claimed=lambda i: float(peers.greedy(*i)),
    second=lambda i: transport(i[0], greedy_sets(i[1], i[2])),
    mutated=lambda i: float(multidraft.optimal_iid(*i)),
    tolerance=1e-8,
    golden=[((*G6, 2), D(".9611091322371"))],
    pairs=drawable,
)
