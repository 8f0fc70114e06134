"""Exponential races: the exact law of the rank R at which the target's token Y stands in the draft order, and of K.

E_i ~ Exp(1) i.i.d.; Y = argmin E_i / P_i; the draft order is by increasing E_i / Q_i (successive sampling from Q without
replacement), R the rank of Y in it. Given Y = i and the winning time t ~ Exp(1), the other tokens stand ahead of i
independently, with probabilities 1 - exp(-t a_ij), a_ij = (Q_j P_i / Q_i - P_j)_+. So every law here is a mixture of
int_0^inf e^{-t} PoissonBinomial(1 - exp(-t a)) dt: `count_law`. Source: theorem E1, after 2504.15475.

Convention where Q has zeros: tokens that the draft never proposes come last, in the order of their index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, is_rational, to_float, total, zeros_like
from ..errors import CostError, UsageError
from ..pmf import entropy, race_agreement, validate_pair
from ..results import Interval
from .race_large import rank_measure
from .race_quadrature import trapezoid

RATIONAL_CAP = 14  # a rational law sums over 2^n subsets of the n tokens that can stand ahead
DIRECT_CAP = 64  # above, floats go through `race_large`
LAW_CAP = 2000
TINY = 1e-290
INDEX_CAP = 10_000_000
LAW_ERROR = 1e-12  # certified L1 error of the float rank law


def single_pair(P: Array, Q: Array) -> tuple[Array, Array]:
    """One checked pair of laws (V,). Float masses below TINY count as zero, so that no ratio overflows.

    Raises DataError for rows that are not laws, UsageError for batches.
    """
    p, q = validate_pair(P, Q)
    if p.ndim != 1 or q.ndim != 1:
        raise UsageError(f"races are computed for one pair of laws (V,) at a time, not {p.shape} and {q.shape}")
    if is_rational(p) != is_rational(q):
        p, q = p.astype(np.float64), q.astype(np.float64)
    return (p, q) if is_rational(p) else (np.where(p < TINY, 0, p), np.where(q < TINY, 0, q))


def ahead_rates(p: Array, q: Array, i: int) -> tuple[int, Array]:
    """(how many tokens are surely ahead of winner `i`, rates a_ij > 0 of those that may be)."""
    if q[i] == 0:
        return int((q > 0).sum() + (q[:i] == 0).sum()), p[:0]
    rates = np.maximum(q * (p[i] / q[i]) - p, 0 * p[i])
    rates[i] = 0 * p[i]  # rounding could put a token ahead of itself
    return 0, rates[rates > 0]


def count_law(rates: Array) -> Array:
    """int_0^inf e^{-t} PB_t dt, (n + 1,): how many of n tokens with probabilities 1 - exp(-t a_j) stand ahead.

    Fractions: c_m = sum over subsets W of size m of 1 / (1 + a(W)), then the binomial expansion of
    sum_m c_m z^{n-m} (1 - z)^m; raises CostError above RATIONAL_CAP. Floats: the trapezoidal rule in ln t, whose error
    is certified below 1e-13 (`race_quadrature`), with the Poisson-binomial recursion at each node.
    """
    n = len(rates)
    if n == 0:
        return 1 + zeros_like(np.zeros(1, dtype=rates.dtype))
    if not is_rational(rates):
        law = np.zeros(n + 1)
        t, w, left, _ = trapezoid(lambda s: float(-np.expm1(-s * rates).sum()), 1e-13)
        law[0] += left
        pmf = np.zeros((len(t), n + 1))
        pmf[:, 0] = w
        for j, a in enumerate(rates):
            ahead = -np.expm1(-t * a)[:, None] * pmf[:, : j + 1]
            pmf[:, : j + 1] -= ahead
            pmf[:, 1 : j + 2] += ahead
        return law + pmf.sum(axis=0)
    if n > RATIONAL_CAP:
        raise CostError(f"the rational law sums over 2^{n} subsets (cap: n = {RATIONAL_CAP}); pass floats instead")
    sums = [[Fraction(0)]] + [[] for _ in range(n)]
    for a in rates:
        for m in range(n, 0, -1):
            sums[m] += [a + s for s in sums[m - 1]]
    out = np.full(n + 1, Fraction(0), dtype=object)
    for m in range(n + 1):
        c = sum((1 / (1 + s) for s in sums[m]), Fraction(0))
        for k in range(m + 1):
            out[n - m + k] += (-1) ** k * math.comb(m, k) * c
    return out


def rank_joint(P: Array, Q: Array) -> Array:
    """P(Y = i, R = r + 1), (V, V): row the winning token, column the rank. Rational for Fractions.

    Raises DataError if `P`, `Q` (V,) are not laws and CostError above LAW_CAP tokens (or RATIONAL_CAP for Fractions).
    """
    p, q = single_pair(P, Q)
    if len(p) > LAW_CAP:
        raise CostError(f"V = {len(p)} tokens exceed the cap {LAW_CAP} of the joint law")
    joint = zeros_like(np.broadcast_to(p, (len(p), len(p))))
    for i in np.flatnonzero(p > 0):
        surely, rates = ahead_rates(p, q, int(i))
        law = p[i] * count_law(rates)
        joint[i, surely : surely + len(law)] += law
    return joint


def rank_law(P: Array, Q: Array) -> Array:
    """The law of R, (V,): entry r is P(R = r + 1). Rational for Fractions; floats within LAW_ERROR = 1e-12 in L1.

    Raises DataError if `P`, `Q` are not laws and CostError above V = 2000 (use `rank_head` or `rank_entropy`) or, for
    Fractions, when more than RATIONAL_CAP tokens can stand ahead.
    """
    p, q = single_pair(P, Q)
    if len(p) > LAW_CAP:
        raise CostError(f"V = {len(p)} tokens exceed the cap {LAW_CAP} of the full law: use rank_head or rank_entropy")
    if is_rational(p) or len(p) <= DIRECT_CAP:
        return total(rank_joint(p, q).T)
    return np.maximum(rank_measure(p, q, LAW_ERROR, every_token=True)[0], 0)


def rank_head(P: Array, Q: Array, m: int, tol: float = 1e-6) -> tuple[Array, float]:
    """The first `m` entries of the law of R and the certified bound (<= `tol`) on the sum of their absolute errors.

    For vocabularies of 50,000 tokens and more. Raises UsageError for m < 1, PrecisionError for `tol` below 1e-12.
    """
    p, q = single_pair(P, Q)
    if m < 1:
        raise UsageError(f"rank_head needs m >= 1 ranks, not {m}")
    pmf, error = rank_measure(to_float(p), to_float(q), tol)
    head = np.zeros(m)
    head[: min(m, len(pmf))] = np.maximum(pmf[:m], 0)
    return head, error


def rank_entropy(P: Array, Q: Array, tol: float = 1e-3) -> Interval:
    """H[R] in nats, certified within `tol`. Raises PrecisionError for `tol` below the floor of `rank_measure`."""
    return rank_estimate(P, Q, tol).entropy


class RankEstimate(NamedTuple):
    """The law of R up to an L1 `error`: `pmf` (V,) of mass 1, and its `entropy` in nats."""

    pmf: Array
    error: float
    entropy: Interval


def rank_estimate(P: Array, Q: Array, tol: float = 1e-3) -> RankEstimate:
    """The whole law of R for any vocabulary, so precise that H[R] is certified within `tol`.

    |H - H'| <= e ln(V - 1) + h(e) for laws at total variation e: the sharp form of Fano's continuity bound (Zhang 2007;
    Audenaert 2007). Raises PrecisionError for `tol` below the floor of `rank_measure`, CostError beyond its cap.
    """
    p, q = (to_float(x) for x in single_pair(P, Q))
    if bool((p == q).all()):
        return RankEstimate(np.eye(1, len(p))[0], 0.0, Interval.exact(0.0, "R = 1 surely"))
    raw, error = rank_measure(p, q, _variation_for(tol, len(p)))
    pmf = np.maximum(raw, 0)
    pmf /= pmf.sum()
    # Clipping brings the measure closer to the law; scaling it to mass 1 at most doubles its L1 error, so TV <= error.
    h, gap = float(entropy(pmf)), _entropy_gap(min(error, 0.5), len(p))
    bounds = max(h - gap, 0.0), h, min(h + gap, math.log(len(p)))
    return RankEstimate(pmf, 2 * error, Interval(*bounds, "certified", None, "E1 quadrature, Audenaert"))


def _entropy_gap(e: float, size: int) -> float:
    """e ln(V - 1) + h(e): how far two entropies over V outcomes at total variation e <= 1 - 1 / V can be."""
    if e <= 0:
        return 0.0
    return min(e * math.log(max(size - 1, 1)) - e * math.log(e) - (1 - e) * math.log1p(-e), math.log(size))


def _variation_for(tol: float, size: int) -> float:
    """The largest total variation (to 5 %) that certifies an entropy within `tol`."""
    e = 0.5
    while _entropy_gap(e, size) > tol and e > 1e-300:
        e *= 0.95
    return e


def draft_laws(Q: Array) -> Array:
    """Q^(r), (V, V): row r is the law of the (r+1)-th draft, successive sampling from `Q` without replacement.

    Rational for Fractions. Tokens without mass come last, in the order of their index. Raises as `rank_joint`.
    """
    q, _ = single_pair(Q, Q)
    size, out = len(q), zeros_like(np.broadcast_to(q, (len(q), len(q))))
    alive = np.flatnonzero(q > 0)
    for i in alive:
        law = count_law(q[alive[alive != i]] / q[i])  # the rank of i in a race of its own: rates Q_j / Q_i
        out[: len(law), i] = law
    for rank, i in enumerate(np.flatnonzero(q == 0), start=len(alive)):
        out[rank, i] = 1 + 0 * q[i]
    assert out.shape == (size, size)
    return out


def index_success(P: Array, Q: Array) -> Array:
    """1 / (1 + lambda_i), (V,): given Y = i, the index K is geometric with this success probability (0 where Q_i = 0).

    1 + lambda_i = sum_j max(P_j, Q_j P_i / Q_i). O(V log V); exact on Fractions; 1 where P_i = 0, which never wins.
    """
    p, q = single_pair(P, Q)
    out, alive = zeros_like(p) + 1, p > 0
    out[alive] = np.minimum(race_agreement(p, q)[alive] / p[alive], out[alive])  # rounding may put it above 1
    return out


def index_law(P: Array, Q: Array, kmax: int) -> Array:
    """P(K = k), k = 1..kmax, (kmax,): the index in the with-replacement race (Poisson functional representation).

    The mass missing from the sum is P(K > kmax); infinite K (winners that Q never proposes) is part of it. Raises
    DataError if P and Q are no laws, UsageError for kmax < 0. Source: theorem E1, after 2504.15475.
    """
    p, q = single_pair(P, Q)
    if kmax < 0:
        raise UsageError(f"index_law needs kmax >= 0, not {kmax}")
    success, out = index_success(p, q), []
    term = p * success
    for _ in range(kmax):
        out.append(total(term))
        term = term * (1 - success)
    return np.array(out, dtype=p.dtype)


def index_mean(P: Array, Q: Array) -> Any:
    """E[K] = sum_i P_i (1 + lambda_i); infinite if Q misses part of P. Exact on Fractions."""
    p, q = single_pair(P, Q)
    success, alive = index_success(p, q), p > 0
    if bool((success[alive] == 0).any()):
        return math.inf
    return total(p[alive] / success[alive])


def index_variance(P: Array, Q: Array) -> Any:
    """Var[K], from E[K^2] = sum_i P_i (2 - s_i) / s_i^2, s = `index_success`; infinite if Q misses part of P."""
    p, _ = single_pair(P, Q)
    success, alive = index_success(P, Q), p > 0
    mean = index_mean(P, Q)
    return mean if mean == math.inf else total(p[alive] * (2 - success[alive]) / success[alive] ** 2) - mean**2


def index_entropy(P: Array, Q: Array) -> Interval:
    """H[K] in nats, certified: summed until the slowest geometric has fallen by e^-60; the rest is bounded.

    Raises CostError where Q misses part of P or the tail is too long (more than 10^7 terms).
    """
    h, last = 0.0, 1
    for pk, k in _index_terms(P, Q):
        h, last = h + float(entropy(pk)), int(k[-1])
    # Past the last term p_k <= e^{-60} (1 - s)^j with j = k - 1 - last and 1 / s <= last + 1; -x ln x increases there.
    rest = 61 * math.exp(-60) * (last + 1)
    return Interval(h, h, h + rest, "certified", None, "E1, geometric mixture")


def index_log_mean(P: Array, Q: Array) -> Interval:
    """E ln K in nats, certified. Raises as `index_entropy`."""
    value, last = 0.0, 1
    for pk, k in _index_terms(P, Q):
        value, last = value + float(pk @ np.log(k)), int(k[-1])
    # Past the last term, ln k <= ln last + (k - last), against the same geometric tail.
    rest = math.exp(-60) * (math.log(last) + last + 1) * (last + 1)
    return Interval(value, value, value + rest, "certified", None, "E1, geometric mixture")


def _index_terms(P: Array, Q: Array) -> Iterator[tuple[Array, Array]]:
    """(P(K = k), k) in blocks of k, until the slowest geometric has fallen by e^-60."""
    p, q = (to_float(x) for x in single_pair(P, Q))
    success, weight = index_success(p, q)[p > 0], p[p > 0]
    slowest = float(success.min())
    if slowest == 0:
        raise CostError("K is infinite with positive probability: Q misses part of P")
    kmax = 1 if slowest >= 1 else math.ceil(-60.0 / math.log1p(-slowest)) + 1
    if kmax > INDEX_CAP:
        raise CostError(f"the law of K needs {kmax} terms (cap {INDEX_CAP}): some token has Q far below P")
    rows = max(1, 2_000_000 // len(weight))
    for at in range(1, kmax + 1, rows):
        k = np.arange(at, min(at + rows, kmax + 1))
        yield (weight * success) @ (1 - success)[:, None] ** (k - 1)[None, :], k


def log_mean(pmf: Array) -> float:
    """E ln R in nats of a rank law (n,)."""
    pmf = to_float(np.asarray(pmf))
    return float(pmf @ np.log(np.arange(1, len(pmf) + 1)))


def mean(pmf: Array) -> Any:
    """E[R] of a rank law (n,). Exact on Fractions."""
    pmf = np.asarray(pmf)
    return total(pmf * np.arange(1, len(pmf) + 1))
