"""ERSD, the laws themselves: of the rank R (E1.law), of the index K (E1.index), what majorises them (E2.majorise),

what they do not give along a path (E3.independent), and the published constants beside them (E7.constants).

Source: 2504.15475 for the rule; notation of `ersd`. `P`, `Q` are laws (V,); Fractions stay exact.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import Array, align, minimum, total
from .race_entropy import published_bounds
from .registry import theorem

ERSD = "arXiv:2504.15475"
COVERED = "laws P, Q with Q > 0 wherever P > 0"


def _ahead(p: Any, q: Any, i: int) -> list[Any]:
    """The rates a_ij > 0 of winner i."""
    rates = [q[j] * p[i] / q[i] - p[j] for j in range(len(p)) if j != i]
    return [a for a in rates if a > 0]


@theorem(
    "E1.law",
    source=ERSD,
    statement=r"P(Y=i, R=r+1) = P_i \sum_W (-1)^{|W|-(n-r)} \tbinom{|W|}{n-r} / (1 + a_i(W))",
    relation="=",
    hypotheses=f"{COVERED}; W over the subsets of the n tokens with a_ij > 0",
    status="proved",
)
def rank_joint(P: Array, Q: Array) -> Array:
    """P(Y = i, R = r + 1), (V, V), by inclusion and exclusion: 2^n subsets a winner. Exact on Fractions."""
    p, q = align(P, Q)
    out = np.array([[0 * p[0]] * len(p)] * len(p), dtype=p.dtype)
    for i in np.flatnonzero(p > 0):
        rates = _ahead(p, q, int(i))
        n = len(rates)
        for size in range(n + 1):
            mass = sum(1 / (1 + sum(w, 0 * p[0])) for w in itertools.combinations(rates, size))
            for r in range(n - size, n + 1):
                sign = (-1) ** (size - (n - r))
                out[i, r] = out[i, r] + p[i] * sign * math.comb(size, n - r) * mass
    return out


@theorem(
    "E1.index",
    source="arXiv:1701.02827; arXiv:2504.15475",
    statement=r"P(K = k) = \sum_i \frac{P_i}{1 + \lambda_i} \Big(\frac{\lambda_i}{1 + \lambda_i}\Big)^{k-1}",
    relation="=",
    hypotheses=f"{COVERED}: given Y = i, K is geometric with success 1 / (1 + lambda_i)",
    status="proved",
)
def index_law(P: Array, Q: Array, kmax: int) -> Array:
    """P(K = k), k = 1..kmax, (kmax,). Exact on Fractions."""
    p, q = align(P, Q)
    weights = [(p[i], 1 / (1 + sum(_ahead(p, q, int(i)), 0 * p[0]))) for i in np.flatnonzero(p > 0)]
    return np.array([sum(w * s * (1 - s) ** k for w, s in weights) for k in range(kmax)], dtype=p.dtype)


@theorem(
    "E2.majorise",
    source="derived; any selection from i.i.d. Q proposals",
    statement=r"P(K \le m) \le \mathbb{E}_Q \min(r, m) \text{ for every } m",
    relation="<=",
    hypotheses=f"{COVERED}; so H_\\alpha[K] >= H_\\alpha(p*) for every Renyi order: p* majorises the falling law of K",
    status="proved",
)
def selection_heads(P: Array, Q: Array, kmax: int) -> Array:
    """E_Q min(r, m), m = 1..kmax, (kmax,): the most that any selection puts on its first m proposals. Exact on Fractions."""
    p, q = align(P, Q)
    return np.array([total(minimum(p, m * q)) for m in range(1, kmax + 1)], dtype=p.dtype)


@theorem(
    "E3.independent",
    source=f"{ERSD}, as usually read",
    statement=r"P(R_1 = r, R_2 = s) = P(R_1 = r)\, P(R_2 = s)",
    relation="=",
    hypotheses="two positions of one path, contexts that vary",
    status="false",
    counterexample="two persistent classes w.p. 1/2: R = 1 surely, and R uniform on {1, 2}: P(R_1 = R_2 = 1) is 5/8, not 9/16",
    replacement="ranks are independent GIVEN the contexts; E6.general bounds trees without independence",
)
def product_law(laws: Array) -> Array:
    """The false joint law (V, V) of two ranks: the product of the mean of `laws` (c, V) with itself."""
    mean = laws.sum(axis=0) / Fraction(len(laws))
    return np.outer(mean, mean)


def conditional_law(laws: Array) -> Array:
    """The joint law (V, V) of two ranks whose common context is one of the rows of `laws` (c, V), uniformly."""
    return sum(np.outer(x, x) for x in laws) / Fraction(len(laws))


@theorem(
    "E7.constants",
    source="arXiv:1701.02827; 1812.03616; 2304.10407; 2501.13736; 2604.23076; Li 2024",
    statement=r"H[K] \le D + \log_2(D + \cdot) + c \text{ bits, published constants}",
    relation="<=",
    hypotheses=f"{COVERED}; the constants are shown beside the exact curve at D = KL(P || Q), not claimed for one context",
    status="report",
)
def published_nats(divergence: float) -> list[float]:
    """The published one-shot bounds at D = `divergence` nats, in nats, in the order of `published_bounds`."""
    return [float(v) * math.log(2) for v in published_bounds(divergence / math.log(2)).values()]
