"""ERSD, speculative decoding by exponential races: the rank law (E1), its traps (E3), the matching lemma (E7).

Source: Kobus and Gunduz 2504.15475. R is the rank of the target's token in the draft order, K its index in the
with-replacement race, r_i = P_i / Q_i, lambda_i = sum_j (Q_j r_i - P_j)_+, D = KL(P || Q). `P`, `Q` are laws (V,);
Fractions stay exact where nothing is irrational. Entropy bounds (E2) live in `race_entropy`, several drafts (E4)
in `multidraft`, trees (E5, E6) in `trees`; their main functions are re-exported here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, align, maximum, minimum, scalar, total
from ..pmf import race_agreement, race_joint, residual, total_variation, validate_pair
from .multidraft import (
    greedy_acceptance,
    index_acceptance,
    kseq_acceptance,
    list_bound,
    optimal_iid,
    optimal_wor,
    peers,
    recursive_rejection,
)
from .race_entropy import (
    calibrated_bound,
    channel_simulation_divergence,
    divergence,
    index_entropy_bound,
    log_rank_bound,
    log_rank_lambda,
    mixture_bound,
    naive_entropy_bound,
    published_bounds,
    selection_entropy,
)
from .registry import theorem
from .trees import (
    Forest,
    Tree,
    averaged_bound,
    chain_tokens,
    expected_tokens,
    general_bound,
    optimal_forest,
    optimal_tree,
    speedup_bounds,
)

ERSD = "arXiv:2504.15475"
LAWS = "laws P, Q over one vocabulary"


@theorem(
    "E1.accept",
    source=ERSD,
    statement=r"P(R = 1) = \sum_i P_i / (1 + \lambda_i)",
    relation="=",
    hypotheses=LAWS,
    status="proved",
)
def acceptance(P: Array, Q: Array) -> Array:
    """P(R = 1) = P(K = 1), (...): the acceptance rate of ERSD. O(V log V); exact on Fractions. Raises DataError."""
    return scalar(total(race_agreement(*validate_pair(P, Q))))


@theorem(
    "E1.lower",
    source=f"{ERSD}; Daliri et al. 2408.07978",
    statement=r"P(R = 1) \ge (1 - \mathrm{TV}) / (1 + \mathrm{TV})",
    relation=">=",
    hypotheses=LAWS,
    status="proved",
)
def acceptance_lower(P: Array, Q: Array) -> Array:
    """(1 - TV) / (1 + TV), (...): no drafter-invariant rule can promise more in general. Exact on Fractions."""
    tv = total_variation(P, Q)
    return (1 - tv) / (1 + tv)


@theorem(
    "E1.upper",
    source="maximal coupling",
    statement=r"P(R = 1) \le 1 - \mathrm{TV}",
    relation="<=",
    hypotheses=LAWS,
    status="proved",
)
def acceptance_upper(P: Array, Q: Array) -> Array:
    """1 - TV, (...): the standard rule's acceptance, which no lossless rule exceeds. Exact on Fractions."""
    return 1 - total_variation(P, Q)


def _rates(P: Array, Q: Array) -> Any:
    """For each i with P_i > 0: (P_i, rates a_ij > 0 of the tokens that may be ahead, number of tokens surely ahead).

    Where Q_i = 0 < P_i nothing is left to chance: tokens without draft mass come last, in the order of their index.
    """
    p, q = (np.asarray(x) for x in align(P, Q))
    if q.dtype != object:
        q = np.where(q < 1e-290, 0, q)  # or ratios overflow
    for i in np.flatnonzero(p > 0):
        if q[i] == 0:
            yield p[i], p[:0], int((q > 0).sum() + (q[:i] == 0).sum())
        else:
            a = q * (p[i] / q[i]) - p
            a[i] = 0 * p[i]
            yield p[i], a[a > 0], 0


@theorem(
    "E1.second",
    source="derived from E1",
    statement=r"P(R=2) = \sum_i P_i \sum_j \left[\frac{1}{1+\lambda_i-a_{ij}} - \frac{1}{1+\lambda_i}\right]",
    relation="=",
    hypotheses="laws P, Q; a winner with Q_i = 0 counts iff exactly one token precedes it by convention",
    status="proved",
)
def second_rank(P: Array, Q: Array) -> Any:
    """P(R = 2): some one token is ahead and no other. O(V^2); exact on Fractions."""
    out = 0 * np.asarray(align(P, Q)[0])[0]
    for weight, a, surely in _rates(P, Q):
        one = 1 + total(a)
        out = out + weight * (int(surely == 1) + total(1 / (one - a) - 1 / one))
    return out


@theorem(
    "E1.mean",
    source="derived from E1",
    statement=r"\mathbb{E}[R] = 1 + \sum_i P_i \sum_j a_{ij} / (1 + a_{ij})",
    relation="=",
    hypotheses="laws P, Q; a winner with Q_i = 0 has the tokens that precede it by convention ahead",
    status="proved",
)
def mean_rank(P: Array, Q: Array) -> Any:
    """E[R]: token j is ahead of winner i with probability a_ij / (1 + a_ij). O(V^2); exact on Fractions."""
    out = 1 + 0 * np.asarray(align(P, Q)[0])[0]
    for weight, a, surely in _rates(P, Q):
        out = out + weight * (surely + total(a / (1 + a)))
    return out


@theorem(
    "E1.two",
    source="derived from E1",
    statement=r"V = 2 \Rightarrow \mathrm{law}(R) = (1 - \mathrm{TV}, \mathrm{TV})",
    relation="=",
    hypotheses="two tokens",
    status="proved",
)
def two_token_law(P: Array, Q: Array) -> Array:
    """(1 - TV, TV) (2,): the rank law over two tokens. Exact on Fractions."""
    tv = total_variation(P, Q)
    return np.array([1 - tv, tv])


@theorem(
    "E1.uniform",
    source="derived from E1 (min-wise sampling, Broder 1997)",
    statement=r"P = U(A), Q = U(B) \Rightarrow P(R = 1) = |A \cap B| / |A \cup B|",
    relation="=",
    hypotheses="uniform laws on sets A and B",
    status="proved",
)
def jaccard(P: Array, Q: Array) -> Any:
    """|A & B| / |A | B| of the supports of two laws: ERSD's acceptance if both are uniform."""
    p, q = align(P, Q)
    both = total(((p > 0) & (q > 0)) * (1 + 0 * p))
    return both / total(((p > 0) | (q > 0)) * (1 + 0 * p))


@theorem(
    "E3.monotone",
    source="as usually read",
    statement=r"P(R = r) \ge P(R = r + 1)",
    relation="<=",
    hypotheses="one context",
    status="false",
    counterexample="P = (.57, .38, .05), Q = (.5994, .3996, .001): law (.951, .002072, .046928); V = 2 iff TV > 1/2",
    replacement="the law of K falls, and P(R <= m) >= P(K <= m) (E4.index)",
)
def rank_rise(rank_pmf: Array) -> Any:
    """0: the false claim that a rank law never rises (second route: its largest rise)."""
    return 0 * rank_pmf[0]


@theorem(
    "E3.zero",
    source="as usually read",
    statement=r"H[R] = 0 \Rightarrow P = Q",
    relation="<=",
    hypotheses="one context",
    status="false",
    counterexample="P = (0, 1), Q = (1, 0): R = 2 surely",
    replacement=r"P(R = 1) = 1 \iff P = Q (E1.upper)",
)
def distance_at_zero_entropy(P: Array, Q: Array) -> Any:
    """0: the false claim that TV(P, Q) vanishes wherever H[R] does."""
    return 0 * align(P, Q)[0][0]


@theorem(
    "E3.reuse",
    source="shared-noise trap",
    statement=r"\text{reusing the draft's race noise for the residual race is lossless}",
    relation="=",
    hypotheses="standard acceptance with its own coin, residual argmin on the draft's noise",
    status="false",
    counterexample="P = (.1, .5, .4), Q = (.6, .3, .1) outputs (.1, .448148, .451852)",
    replacement="fresh noise for the residual draw, or ERSD's own test (E1.lossless)",
)
def lossless_law(P: Array, Q: Array) -> Array:
    """The target law, (V,): what a lossless rule emits."""
    return align(P, Q)[0]


def reused_noise_law(P: Array, Q: Array) -> Array:
    """Law (V,) emitted when the residual race reuses the draft's noise: q A + sum_x (1 - A(x)) P(X = x, residual = y).

    Biased: given X, the noise of the other tokens is no longer exponential. Exact on Fractions; O(V^4).
    """
    p, q = align(P, Q)
    joint = race_joint(residual(p, q), q)  # row: drafted x; column: winner of the residual's race on the same noise
    reject = maximum(q - p, 0) / np.where(q > 0, q, 1 + 0 * q)
    return minimum(p, q) + (reject[:, None] * joint).sum(axis=0)


@theorem(
    "E1.lossless",
    source=ERSD,
    statement=r"\mathrm{law}(Y) = P \text{ for every drafter}",
    relation="=",
    hypotheses=LAWS,
    status="proved",
)
def output_law(P: Array, Q: Array) -> Array:
    """The law (V,) that ERSD emits, in chain, list and tree form: the target's."""
    return align(P, Q)[0]


@theorem(
    "E7.matching",
    source="Poisson matching lemma, Li and Anantharam 1812.03616",
    statement=r"P(R \ne 1 \mid Y = y) \le 1 - 1 / (1 + r_y)",
    relation="<=",
    hypotheses=LAWS,
    status="proved",
)
def matching_miss(P: Array, Q: Array) -> Array:
    """1 - 1 / (1 + P_y / Q_y), (V,); 1 where Q_y = 0 < P_y and 0 where P_y = 0. Exact on Fractions."""
    p, q = align(P, Q)
    alive = (p > 0) & (q > 0)
    miss = np.where(alive, p / np.where(alive, p + q, 1 + 0 * p), 0 * p)
    return np.where((p > 0) & (q == 0), 1 + 0 * p, miss)


__all__ = [
    "Forest",
    "Tree",
    "acceptance",
    "acceptance_lower",
    "acceptance_upper",
    "averaged_bound",
    "calibrated_bound",
    "chain_tokens",
    "channel_simulation_divergence",
    "divergence",
    "expected_tokens",
    "general_bound",
    "greedy_acceptance",
    "index_acceptance",
    "index_entropy_bound",
    "kseq_acceptance",
    "list_bound",
    "log_rank_bound",
    "log_rank_lambda",
    "matching_miss",
    "mean_rank",
    "mixture_bound",
    "naive_entropy_bound",
    "optimal_forest",
    "optimal_iid",
    "optimal_tree",
    "optimal_wor",
    "peers",
    "published_bounds",
    "recursive_rejection",
    "reused_noise_law",
    "second_rank",
    "selection_entropy",
    "speedup_bounds",
]
