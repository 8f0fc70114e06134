"""One position, several drafts (E4): the optimal value, and what ERSD, K-SEQ, recursive rejection and greedy drafts reach.

m drafts are i.i.d. from Q, or drawn from Q without replacement (the race order). `P`, `Q` (V,) in floats or Fractions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, align, minimum, total
from ..errors import CostError, UsageError
from ..pmf import overlap, race_agreement, residual
from .registry import theorem

SUBSET_CAP = 16


def _laws(P: Array, Q: Array, m: int) -> tuple[Any, Any]:
    p, q = align(P, Q)
    if m != int(m) or m < 1:
        raise UsageError(f"a list needs m >= 1 drafts, not {m}")
    return np.asarray(p), np.asarray(q)


def _success(p: Any, q: Any) -> Any:
    """1 / (1 + lambda_i) over the tokens with P_i > 0 (0 where Q_i = 0)."""
    return race_agreement(p, q)[p > 0] / p[p > 0]


@theorem(
    "E4.index",
    source="arXiv:2504.15475; Poisson functional representation, arXiv:1701.02827",
    statement=r"P(R \le m) \ge P(K \le m) = 1 - \sum_i P_i (\lambda_i / (1 + \lambda_i))^m",
    relation=">=",
    hypotheses="R <= K: drafting without repetition skips what the with-replacement race proposes twice",
    status="proved",
)
def index_acceptance(P: Array, Q: Array, m: int) -> Any:
    """P(K <= m): some of m proposals of the Poisson functional representation is the target's. Exact on Fractions."""
    p, q = _laws(P, Q, m)
    return 1 - total(p[p > 0] * (1 - _success(p, q)) ** m)


@theorem(
    "E4.list",
    source="list matching bound, derived from P(K <= m)",
    statement=r"P(K \le m) \ge \sum_i P_i \frac{m}{m + \lambda_i}",
    relation=">=",
    hypotheses="laws P, Q; m >= 1; a token with Q_i = 0 counts 0",
    status="proved",
)
def list_bound(P: Array, Q: Array, m: int) -> Any:
    """sum_i P_i m / (m + lambda_i): (1 + 1 / lambda)^m >= 1 + m / lambda (Bernoulli). Exact on Fractions."""
    p, q = _laws(P, Q, m)
    s = _success(p, q)
    return total(p[p > 0] * m * s / (m * s + 1 - s))


@theorem(
    "E4.optimal",
    source="Sun et al. 2310.15141; Khisti et al. 2410.18234 (two drafts)",
    statement=r"\alpha^*_{\mathrm{iid}} = 1 + \min_H [P(H) - Q(H)^m]",
    relation="=",
    hypotheses="m i.i.d. drafts; H runs over the prefixes of the order Q / P descending",
    status="proved",
)
def optimal_iid(P: Array, Q: Array, m: int) -> Any:
    """The largest probability of emitting one of `m` i.i.d. drafts, over all lossless rules. Exact on Fractions.

    For m = 2 this is the canonical two-draft value min_S P(S) + Q(S^c)^2 + 2 Q(S) Q(S^c). O(V log V).
    """
    p, q = _laws(P, Q, m)
    drawn = np.flatnonzero(q > 0)
    order = drawn[np.argsort(p[drawn] / q[drawn], kind="stable")]  # Q / P descending
    gaps = np.cumsum(p[order]) - np.cumsum(q[order]) ** m
    return 1 + min(0 * p[0], gaps.min())


@theorem(
    "E4.wor",
    source="polymatroid duality; Sun et al. 2310.15141 for the transport problem",
    statement=r"\alpha^*_{\mathrm{wor}}(m) = 1 + \min_H [P(H) - \Pr(\text{all } m \text{ drafts in } H)]",
    relation="=",
    hypotheses="m drafts without replacement; H runs over all subsets",
    status="proved",
)
def optimal_wor(P: Array, Q: Array, m: int) -> Any:
    """The largest probability of emitting one of `m` drafts drawn from Q without replacement. Exact on Fractions.

    Tokens without draft mass are drafted last, by index, as in the race. Enumerates 2^V sets: CostError above V = 16.
    """
    p, q = _laws(P, Q, m)
    inside, size, sets = wor_sets(q, m), len(p), np.arange(1 << len(p))
    mass = inside * 0
    for i in range(size):
        has = (sets >> i & 1).astype(bool)
        mass[has] = mass[has] + p[i]
        inside[has] = inside[has] + inside[sets[has] ^ 1 << i]  # sums over subsets, one token at a time
    return 1 + min(mass - inside)


def wor_sets(Q: Array, m: int) -> Any:
    """Law of the SET of the first `m` drafts without replacement, (2^V,), indexed by bit mask. Exact on Fractions.

    Once the tokens with mass are used up, those without follow in the order of their index. Raises CostError above V =
    SUBSET_CAP.
    """
    q = np.asarray(align(Q)[0])
    if len(q) > SUBSET_CAP:
        raise CostError(f"draft sets number 2^{len(q)} (cap: V = {SUBSET_CAP})")
    law = {0: 1 + 0 * q[0]}
    for _ in range(min(m, len(q))):
        following: dict[int, Any] = {}
        for s, w in law.items():
            left = [i for i in range(len(q)) if not s >> i & 1]
            chance = (
                [q[i] for i in left] if any(q[i] > 0 for i in left) else [1 + 0 * q[0], *([0 * q[0]] * (len(left) - 1))]
            )
            for i, c in zip(left, chance):
                if c > 0:
                    following[s | 1 << i] = following.get(s | 1 << i, 0 * w) + w * c / sum(chance)
        law = following
    out = np.array([0 * q[0]] * (1 << len(q)), dtype=q.dtype)
    for s, w in law.items():
        out[s] = w
    return out


@theorem(
    "E4.kseq",
    source="K-SEQ, Sun et al. 2310.15141",
    statement=r"1 - (1 - \beta(\rho^*))^m,\ \beta(\rho) = \sum \min(Q, P/\rho),\ 1 - (1 - \beta)^m = \rho \beta",
    relation="=",
    hypotheses="m i.i.d. drafts, tried in turn with acceptance min(1, P / (rho Q)), rho* in [1, m]",
    status="proved",
)
def kseq_acceptance(P: Array, Q: Array, m: int) -> float:
    """Acceptance of K-SEQ at its least valid rho*, in floats; at m = 1 the standard rule's 1 - TV."""
    p, q = (x.astype(np.float64) for x in _laws(P, Q, m))
    rho = kseq_rho(p, q, m)
    return float(1 - (1 - np.minimum(q, p / rho).sum()) ** m)


def kseq_rho(P: Array, Q: Array, m: int) -> float:
    """rho*: the least rho in [1, m] with 1 - (1 - beta)^m <= rho beta, beyond which the residual is a law. Bisection."""
    from scipy.optimize import brentq

    p, q = (x.astype(np.float64) for x in _laws(P, Q, m))

    def gap(rho: float) -> float:
        beta = np.minimum(q, p / rho).sum()
        return float(1 - (1 - beta) ** m - rho * beta)

    return 1.0 if m == 1 or gap(1.0) <= 0 else float(brentq(gap, 1.0, float(m), xtol=1e-15, rtol=1e-15))


def recursive_rejection(P: Array, Q: Array, m: int, replacement: bool) -> Any:
    """Acceptance of recursive rejection sampling with `m` drafts: try each against what is left of the target.

    Without `replacement` a rejected token leaves the draft law. Exact on Fractions; O(V^(m-1)) then.
    Source: Miao et al. 2305.09781; Jeon et al. 2402.14160 (without replacement).
    """
    p, q = _laws(P, Q, m)
    if m == 1 or not (p != q).any():
        return overlap(p, q)
    following = residual(p, q)
    if replacement:
        return 1 - (1 - overlap(p, q)) * (1 - recursive_rejection(following, q, m - 1, True))
    missed = 0 * p[0]
    for x in np.flatnonzero(q > p):
        left = q.copy()
        left[x] = 0 * q[x]
        mass = total(left)
        again = recursive_rejection(following, left / mass, m - 1, False) if mass > 0 else 0 * p[0]
        missed = missed + (q[x] - p[x]) * (1 - again)
    return 1 - missed


def greedy_acceptance(P: Array, Q: Array, m: int) -> Any:
    """P(Top) + sum_{x not in Top} min(P, Q / (1 - Q(Top))): the m - 1 likeliest drafts surely, one more drawn from the rest.

    Optimal for its own draft law. Exact on Fractions. Source: Hu et al. 2502.18779.
    """
    p, q = _laws(P, Q, m)
    order = np.argsort(-q, kind="stable")
    top, rest = order[: m - 1], order[m - 1 :]
    left = total(q[rest])
    if not left > 0:
        return total(p[top])
    return total(p[top]) + total(minimum(p[rest], q[rest] / left))


def peers(P: Array, Q: Array, m: int) -> dict[str, float]:
    """Acceptance of the peers of ERSD at list size `m` that cost at most O(V log V), by name; not ordered in general."""
    return {
        "optimal, i.i.d. drafts": float(optimal_iid(P, Q, m)),
        "greedy drafts": float(greedy_acceptance(P, Q, m)),
        "K-SEQ": kseq_acceptance(P, Q, m),
        "recursive rejection": float(recursive_rejection(P, Q, m, True)),
        "Poisson index": float(index_acceptance(P, Q, m)),
    }
