"""Checks of the race's laws: quadrature of the winning time, the proposals' arrival times, two positions term by term."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from .. import exact
from ..testing import path_laws, race_pairs
from ..testing.strategies import law_of
from ..theory import ersd, race_law
from .checks import check
from .fixed_ersd import G1, G4, path, recorded

TERMS = 6  # indices compared


def by_arrival(p: Any, q: Any, kmax: int) -> Any:
    """P(K = k) from the proposals' arrival times: the k-th, T ~ Gamma(k), is chosen if no other has T_j / r_j below T / r.

    Earlier ones are uniform on [0, T]: each loses with c = sum_j Q_j (1 - r_j / r)_+. Later ones are a Poisson process:
    none wins with E exp(-T d) = (1 + d)^-k, d = sum_j Q_j (r_j / r - 1)_+.
    """
    r, out = p / q, []
    for k in range(1, kmax + 1):
        total = Fraction(0)
        for i in np.flatnonzero(p > 0):
            c = sum(q * np.maximum(1 - r / r[i], 0))
            d = sum(q * np.maximum(r / r[i] - 1, 0))
            total += q[i] * c ** (k - 1) / (1 + d) ** k
        out.append(total)
    return np.array(out, dtype=object)


def one_geometric(p: Any, q: Any) -> Any:
    """The wrong law of K: one geometric of the overall acceptance."""
    s = ersd.acceptance(p, q)
    return np.array([s * (1 - s) ** k for k in range(TERMS)], dtype=object)


check(
    "E1.law",
    instances=race_pairs(),
    claimed=lambda i: race_law.rank_joint(*i),
    second=lambda i: exact.rank_joint(*(x.astype(float) for x in i)),
    mutated=lambda i: np.outer(i[0], exact.rank_law(*i)),
    golden=[(G1, None), (G4, None)],
    blocks=recorded,
)
check(
    "E1.index",
    instances=race_pairs(),
    claimed=lambda i: race_law.index_law(i[0], i[1], TERMS),
    second=lambda i: by_arrival(i[0], i[1], TERMS),
    mutated=lambda i: one_geometric(*i),
    tolerance=0,
    golden=[(G1, None), (G4, None)],
    blocks=recorded,
)
check(
    "E2.majorise",
    instances=race_pairs(),
    claimed=lambda i: race_law.selection_heads(i[0], i[1], TERMS),
    second=lambda i: np.cumsum(exact.index_law(i[0], i[1], TERMS)),
    mutated=lambda i: race_law.selection_heads(i[0], i[1], 1),
    tolerance=0,
    golden=[(G1, None), (G4, None)],
    blocks=recorded,
)


def in_one_context(laws: Any) -> Any:
    """P(R_1 = r, R_2 = s) where one of the laws, drawn uniformly, holds at both positions: added up context by context."""
    size = laws.shape[1]
    return [[sum(x[r] * x[s] for x in laws) / Fraction(len(laws)) for s in range(size)] for r in range(size)]


CLASSES = np.stack([law_of(1, 0), law_of(1, 1)])
check(
    "E3.independent",
    instances=path_laws().map(lambda i: i[0]),
    claimed=race_law.product_law,
    second=in_one_context,
    mutated=race_law.conditional_law,
    tolerance=0,
    golden=[(CLASSES, [[Fraction(9, 16), Fraction(3, 16)], [Fraction(3, 16), Fraction(1, 16)]])],
    blocks=lambda block: path(block)[0],
)
check(
    "E7.constants",
    instances=race_pairs(),
    claimed=lambda i: race_law.published_nats(ersd.divergence(*i)),
    second=lambda i: float(exact.index_entropy(*i).upper),
    mutated=lambda i: [v - 2 for v in race_law.published_nats(ersd.divergence(*i))],
    golden=[(G1, None), (G4, None)],
    blocks=recorded,
)
