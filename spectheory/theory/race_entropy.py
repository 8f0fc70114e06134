"""Entropy and log bounds of ERSD (E2), the reading of them that fails (E3.entropy), and published constants (E7).

`P`, `Q` are laws (V,), floats or Fractions; results are floats in nats unless they say bits. D = KL(P || Q).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import Array, align, to_float
from ..pmf import kl, race_agreement
from .registry import theorem

ERSD = "arXiv:2504.15475"
PFR = "arXiv:1701.02827"
LAWS = "laws P, Q over one vocabulary"


def _lambdas(P: Array, Q: Array) -> tuple[Any, Any]:
    """(P_i, 1 + lambda_i) in floats over the tokens with P_i > 0; infinite where Q_i = 0."""
    p, q = (np.asarray(to_float(x)) for x in align(P, Q))
    s = race_agreement(p, q)[p > 0]
    return p[p > 0], np.divide(p[p > 0], s, out=np.full(len(s), np.inf), where=s > 0)


@theorem(
    "E2.log_lambda",
    source="derived: Jensen for the geometric K given Y",
    statement=r"\mathbb{E} \ln R \le \mathbb{E} \ln K \le \mathbb{E}_P \ln(1 + \lambda_Y)",
    relation="<=",
    hypotheses=LAWS,
    status="proved",
)
def log_rank_lambda(P: Array, Q: Array) -> float:
    """E_P ln(1 + lambda_Y) in nats: bounds E ln K and E ln R. O(V log V); infinite if Q misses part of P."""
    p, one = _lambdas(P, Q)
    return float(p @ np.log(one))


@theorem(
    "E2.log",
    source=f"derived; compare {PFR}",
    statement=r"\mathbb{E}_P \ln(1 + \lambda_Y) \le D + \ln 2",
    relation="<=",
    hypotheses=LAWS,
    status="proved",
)
def log_rank_bound(P: Array, Q: Array) -> float:
    """D + ln 2 in nats: bounds E ln R. From 1 + lambda_i <= 1 + r_i and E_P ln(1 + 1 / r) <= ln 2."""
    return float(kl(to_float(align(P, Q)[0]), to_float(align(P, Q)[1]))) + math.log(2)


@theorem(
    "E2.entropy",
    source="Li 2024, with majorisation of K by R",
    statement=r"H[R] \le H[K] \le D + \log_2(D + 2) + 2 \text{ bits}",
    relation="<=",
    hypotheses=LAWS,
    status="proved",
)
def index_entropy_bound(P: Array, Q: Array) -> float:
    """D + log2(D + 2) + 2 bits, in nats: bounds H[K], hence H[R]: the falling law of K is majorised by R's."""
    bits = (log_rank_bound(P, Q) - math.log(2)) / math.log(2)
    return (bits + math.log2(bits + 2) + 2) * math.log(2) if math.isfinite(bits) else math.inf


def _misses(P: Array, Q: Array) -> bool:
    """Whether P has mass where Q has none."""
    p, q = align(P, Q)
    return bool(((q == 0) & (p > 0)).any())


def _steps(P: Array, Q: Array) -> tuple[Any, Any, Any]:
    """r = P / Q falling, Q (tokens with Q > 0), and w = Q(ratio >= r) cumulated, in floats."""
    p, q = (np.asarray(to_float(x)) for x in align(P, Q))
    p, q = p[q > 0], q[q > 0]
    order = np.argsort(-p / q, kind="stable")
    return (p / q)[order], q[order], np.cumsum(q[order])


@theorem(
    "E2.selection",
    source="derived; any selection from i.i.d. Q proposals",
    statement=r"H[K] \ge H(p^*),\ p^*_k = \mathbb{E}_Q[\min(r, k) - \min(r, k - 1)]",
    relation=">=",
    hypotheses="P absolutely continuous with respect to Q",
    status="proved",
)
def selection_entropy(P: Array, Q: Array) -> float:
    """H(p*) in nats: p* majorises the index of every rule that selects from i.i.d. proposals. Infinite r: no bound, inf."""
    if _misses(P, Q):
        return math.inf
    r, q, _ = _steps(P, Q)
    k = np.arange(1, math.ceil(float(r[0])) + 1)
    star = np.array([(q * (np.minimum(r, x) - np.minimum(r, x - 1))).sum() for x in k])
    return math.fsum(-x * math.log(x) for x in star if x > 0)


@theorem(
    "E2.dcs",
    source="channel-simulation divergence, Goc and Flamich 2024",
    statement=r"H(p^*) \ge D_{CS} = -\int_0^\infty w \ln w \, dh,\ w(h) = Q(r \ge h)",
    relation=">=",
    hypotheses="P absolutely continuous with respect to Q",
    status="proved",
)
def channel_simulation_divergence(P: Array, Q: Array) -> float:
    """D_CS in nats: w is a step function of h, so the integral is a finite sum. Infinite if Q misses part of P."""
    if _misses(P, Q):
        return math.inf
    r, _, w = _steps(P, Q)
    w = np.minimum(w, 1.0)
    return float(-(w * np.log(w)) @ -np.diff(r, append=0.0))


@theorem(
    "E2.kl",
    source="channel-simulation divergence, Goc and Flamich 2024",
    statement=r"D_{CS} \ge D = \mathrm{KL}(P \Vert Q)",
    relation=">=",
    hypotheses="P absolutely continuous with respect to Q",
    status="proved",
)
def divergence(P: Array, Q: Array) -> float:
    """D = KL(P || Q) in nats: below H[K], but NOT below H[R] (E3.entropy)."""
    p, q = align(P, Q)
    return float(kl(p, q))


@theorem(
    "E2.mixture",
    source="ours",
    statement=r"H[R] \ge \mathrm{KL}\big(P \,\Vert\, \sum_r P(R = r) Q^{(r)}\big)",
    relation=">=",
    hypotheses=LAWS,
    status="proved",
)
def mixture_bound(P: Array, rank_pmf: Array, draft_laws: Array) -> float:
    """KL(P || sum_r P(R = r) Q^(r)) in nats; `rank_pmf` (V,), `draft_laws` (V, V), row r the law of the (r+1)-th draft.

    Evaluate in Fractions or to 1e-9. From P(Y = i, R = r) <= Q^(r)_i and the data-processing inequality.
    """
    p, mixed = align(np.asarray(P), np.asarray(rank_pmf) @ np.asarray(draft_laws))
    return float(kl(p, mixed))


@theorem(
    "E2.calibrated",
    source="channel-simulation reading of the lower bound, derived",
    statement=r"Q_Z = \mathbb{E}[P_C \mid Z] \Rightarrow H(R \mid Z) \ge \mathbb{E}\, \mathrm{KL}(P_C \Vert Q_Z)",
    relation=">=",
    hypotheses="the draft law is the conditional mean of the target's over contexts C that it cannot tell apart",
    status="proved",
)
def calibrated_bound(targets: Array, weights: Array) -> float:
    """sum_c w_c KL(P_c || Q), Q = sum_c w_c P_c, in nats; `targets` (n, V) share one draft class, `weights` (n,)."""
    t, w = align(np.asarray(targets), np.asarray(weights))
    mean = (w[:, None] * t).sum(axis=0)
    return math.fsum(float(b) * float(kl(a, mean)) for a, b in zip(t, w) if b > 0)


@theorem(
    "E3.entropy",
    source=f"{ERSD}, as usually read",
    statement=r"H[R] \ge D",
    relation=">=",
    hypotheses="one context",
    status="false",
    counterexample="P = (.9, .1), Q = (.9999, .0001): H[R] = .324863 < D = .596041; over two tokens H[R] = h(TV)",
    replacement="E2.mixture, E2.calibrated",
)
def naive_entropy_bound(P: Array, Q: Array) -> float:
    """The false bound H[R] >= KL(P || Q), in nats."""
    return divergence(P, Q)


def published_bounds(divergence_bits: Any) -> dict[str, Any]:
    """Published one-shot channel-simulation constants (E7): bits needed at `divergence_bits` I, by source."""
    i = np.asarray(divergence_bits, dtype=np.float64)
    return {
        "Li, El Gamal 1701.02827": i + np.log2(i + 1) + 3.871,
        "Li, Anantharam 1812.03616": i + np.log2(i + 1) + 3.732,
        "Flamich, Theis 2304.10407": i + np.log2(i + 1) + 3.45,
        "Li 2024": i + np.log2(i + 2) + 2,
        "Li 2501.13736": i + np.log2(i + 3.4) + 1,
        "Hill et al. 2604.23076": i + np.log2(i + 1) + 2.45,
    }
