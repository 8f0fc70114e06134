"""Sequence level: certified bounds on TV(P~, P) of the engine over T tokens, at any horizon (theorems Q1..Q6).

Doubling computes each bound in O(log T) products of the transfer matrices of `theory.chain`. Proofs: docs/theory/sequence.md.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array, align, maximum, minimum, ratio, scalar, total
from ..errors import UsageError
from ..pmf import kl, total_variation
from ..results import Interval
from .chain import Chain, accumulate, gains, reached, rounded_down, start, transfer
from .registry import theorem

SHEET = "spectheory, docs/theory/sequence.md"


@theorem(
    "Q1",
    source=SHEET,
    statement=r"\tilde P(x_{1..T}) = e_0^\top M_1(x_1) \cdots M_T(x_T) \mathbf 1",
    relation="=",
    hypotheses="any token verifier, tabular model, K and T; M_t(x) moves j to j + 1 (accept), to 0 (correct, bonus)",
    status="proved",
)
def sequence_probability(c: Chain, tokens: Array) -> float:
    """P~ of one sequence (T,), by its product of (K + 1) x (K + 1) matrices."""
    state, context = np.eye(c.block_size + 1)[0], c.initial
    for x in tokens:
        m = np.diag(np.full(c.block_size, c.accepted[context, x]), 1)
        m[: c.block_size, 0], m[c.block_size, 0] = c.corrected[context, x], c.p[context, x]
        state, context = state @ m, c.successors[context, x]
    return float(state.sum())


@theorem(
    "Q1.standard",
    source=SHEET,
    statement=r"A = \min(1, p/q),\ r \propto (p - q)_+ \Rightarrow \tilde P = P",
    relation="=",
    hypotheses="the standard rule; every model, K and T",
    status="proved",
)
def standard_probability(c: Chain, tokens: Array) -> float:
    """The standard rule's probability of one sequence (T,): the target's."""
    value, context = 1.0, c.initial
    for x in tokens:
        value, context = value * c.p[context, x], c.successors[context, x]
    return float(value)


def _drifts(c: Chain) -> Array:
    """One-step deviations Delta(context) = TV(out, p), (S,)."""
    return np.atleast_1d(total_variation(c.out, c.p))


@theorem(
    "Q2",
    source=SHEET,
    statement=r"\mathrm{TV}(\tilde P, P) \le 1 - W_T,\ W_T = \sum_{(x, j)} \prod_t m_t(x_t)\, k(j_t \mid x_t, j_{t-1})",
    relation="<=",
    hypotheses="any token verifier, tabular model, K and T",
    status="proved",
)
def coupling(c: Chain) -> float:
    """1 - W_T, summed as the weight lost at each step, so that no digits cancel. Never above Q3 nor Q4."""
    return min(1.0, accumulate(c, transfer(c, minimum(c.out, c.p), c.p), gains(c, _drifts(c))))


@theorem(
    "Q3",
    source=SHEET,
    statement=r"\mathrm{TV}(\tilde P, P) \le \mathbb{E}_{\tilde P} \sum_{t\ \mathrm{drafted}} \Delta(x_{<t})",
    relation="<=",
    hypotheses="any token verifier, tabular model, K and T",
    status="proved",
)
def union(c: Chain) -> float:
    """Expected sum of one-step deviations over drafted steps, under the engine's law. May exceed 1."""
    return accumulate(c, transfer(c, c.out, c.p), gains(c, _drifts(c)))


@theorem(
    "Q3.target",
    source=SHEET,
    statement=r"\mathrm{TV}(\tilde P, P) \le \mathbb{E}_{P \otimes k} \sum_{t\ \mathrm{drafted}} \Delta(x_{<t})",
    relation="<=",
    hypotheses="any token verifier, tabular model, K and T; k of Q2, with k(0 | x, j) = 1 where the output law is 0",
    status="proved",
)
def union_target(c: Chain) -> float:
    """Expected sum of one-step deviations over drafted steps, under the target's law joined with the engine's kernel."""
    return accumulate(c, transfer(c, c.p, c.p), gains(c, _drifts(c)))


@theorem(
    "Q4",
    source=SHEET,
    statement=r"\Delta \le \delta \Rightarrow \mathrm{TV}(\tilde P, P) \le 1 - (1 - \delta)^T \le T \delta",
    relation="<=",
    hypotheses="every context that both laws can reach within T tokens deviates by at most delta",
    status="proved",
)
def uniform_bound(delta: float, length: int) -> float:
    """1 - (1 - delta)^T without cancellation."""
    return 1.0 if delta >= 1 else -math.expm1(length * math.log1p(-delta))


def uniform(c: Chain) -> float:
    """Q4 with the largest one-step deviation among drafted states that both laws can reach."""
    both = reached(start(c), transfer(c, minimum(c.out, c.p), c.p), c.length)
    return uniform_bound(float(np.max(gains(c, _drifts(c))[both], initial=0)), c.length)


@theorem(
    "Q5",
    source=SHEET,
    statement=r"\mathrm{KL}(\tilde P \| P) \le \sum_t \mathbb{E}_{\tilde P} \mathrm{KL}(\tilde p_t \| p_t)",
    relation="<=",
    hypotheses="any token verifier, tabular model; equality if K >= T",
    status="proved",
)
def kl_chain(c: Chain) -> float:
    """Sum of expected one-step KL(p~ || p) in nats over drafted steps, under the engine's law; may be infinite."""
    return accumulate(c, transfer(c, c.out, c.p), gains(c, np.atleast_1d(kl(c.out, c.p))))


@theorem(
    "Q5.reverse",
    source=SHEET,
    statement=r"\mathrm{KL}(P \| \tilde P) \le \sum_t \mathbb{E}_{P \otimes k} \mathrm{KL}(p_t \| \tilde p_t)",
    relation="<=",
    hypotheses="any token verifier, tabular model; equality if K >= T",
    status="proved",
)
def kl_chain_reverse(c: Chain) -> float:
    """Sum of expected one-step KL(p || p~) in nats over drafted steps, under the target's law; may be infinite."""
    return accumulate(c, transfer(c, c.p, c.p), gains(c, np.atleast_1d(kl(c.p, c.out))))


@theorem(
    "Q5.pinsker",
    source="Pinsker's inequality (Tsybakov 2009, Lemma 2.5)",
    statement=r"\mathrm{TV} \le \sqrt{\mathrm{KL} / 2}",
    relation="<=",
    hypotheses="any pair of laws, KL in either direction",
    status="proved",
)
def pinsker(divergence: float) -> float:
    """sqrt(KL / 2), KL in nats."""
    return math.sqrt(divergence / 2)


@theorem(
    "Q5.bretagnolle_huber",
    source="Bretagnolle and Huber 1979 (Tsybakov 2009, Lemma 2.6)",
    statement=r"\mathrm{TV} \le \sqrt{1 - e^{-\mathrm{KL}}}",
    relation="<=",
    hypotheses="any pair of laws, KL in either direction",
    status="proved",
)
def bretagnolle_huber(divergence: float) -> float:
    """sqrt(1 - exp(-KL)), KL in nats: never above 1."""
    return math.sqrt(-math.expm1(-divergence))


@theorem(
    "Q6",
    source=SHEET,
    statement=r"\mathrm{TV}(\tilde P, P) \le \sqrt{1 - BC^2},\ BC = \sum_{(x,j)} \sqrt{\tilde P(x,j)\,(P \otimes k)(x,j)}",
    relation="<=",
    hypotheses="any token verifier, tabular model, K and T",
    status="proved",
)
def hellinger(c: Chain) -> float:
    """sqrt(1 - BC^2) of the joint laws over (tokens, j)."""
    d = hellinger_defect(c)
    return math.sqrt(max(0.0, d * (2 - d)))


def hellinger_defect(c: Chain) -> float:
    """1 - BC of the joint laws, summed as the weight lost at each step."""
    step = np.sum((np.sqrt(c.out) - np.sqrt(c.p)) ** 2, axis=-1) / 2
    return min(1.0, accumulate(c, transfer(c, np.sqrt(c.out * c.p), c.p), gains(c, step)))


@theorem(
    "Q6.lower",
    source=SHEET,
    statement=r"K \ge T \Rightarrow \mathrm{TV}(\tilde P, P) \ge 1 - BC",
    relation=">=",
    hypotheses="K >= T: no bonus step",
    status="proved",
)
def hellinger_lower(c: Chain) -> float:
    """1 - BC where it bounds TV from below. Raises UsageError if a bonus step can occur (`Q6.lower_any_k` is false)."""
    if c.block_size < c.length:
        raise UsageError(f"the lower Hellinger side needs block_size >= length, not {c.block_size} < {c.length}")
    return rounded_down(hellinger_defect(c), c)


@theorem(
    "Q6.lower_any_k",
    source=SHEET,
    statement=r"\mathrm{TV}(\tilde P, P) \ge 1 - BC \text{ with bonus steps}",
    relation=">=",
    hypotheses="any K and T",
    status="false",
    counterexample="p1 = 1/3113, q1 = 8245/8249, A = (878/4799, 26/9221), r1 = 7966/7983, K = 1, T = 3",
    replacement=r"K \ge T, or the joint law over (tokens, j)",
)
def hellinger_lower_any_k(c: Chain) -> float:
    """1 - BC of the joint laws, whatever K: not a lower bound on the deviation of the tokens."""
    return rounded_down(hellinger_defect(c), c)


@theorem(
    "Q9",
    source=SHEET,
    statement=r"\mathrm{TV}(\tilde P, P) = \mathbb{E}_{x \sim \tilde P} (1 - P(x) / \tilde P(x))_+",
    relation="=",
    hypotheses="any two laws, whatever their supports",
    status="proved",
)
def overshoot(law: Array, target: Array) -> Array:
    """E_{x ~ law} (1 - target / law)_+, (...), of laws (..., V): the mean of a variable in [0, 1]. Exact on Fractions."""
    law, target = align(law, target)
    return scalar(total(law * maximum(1 - ratio(target, law, 1), 0)))


@theorem(
    "Q9.absolute",
    source=SHEET,
    statement=r"\mathrm{TV}(\tilde P, P) = \tfrac12 \mathbb{E}_{x \sim \tilde P} |1 - P(x) / \tilde P(x)|",
    relation="=",
    hypotheses="any two laws",
    status="false",
    counterexample="P~ = (1, 0), P = (0, 1): 1/2 instead of 1; P has mass that P~ never shows",
    replacement="Q9: the positive part, which needs no such mass",
)
def half_absolute(law: Array, target: Array) -> Array:
    """1/2 E_{x ~ law} |1 - target / law|, (...): TV only if `law` covers the support of `target`."""
    law, target = align(law, target)
    return scalar(total(law * abs(1 - ratio(target, law, 1))) / 2)


def intervals(c: Chain) -> dict[str, Interval]:
    """Q2..Q6 as Intervals, upper ends unclipped (a union bound may exceed 1)."""
    forward, backward = kl_chain(c), kl_chain_reverse(c)
    upper = {
        "coupling": ("Q2", coupling(c)),
        "union": ("Q3", union(c)),
        "union_target": ("Q3.target", union_target(c)),
        "uniform": ("Q4", uniform(c)),
        "pinsker": ("Q5, Pinsker", pinsker(forward)),
        "bretagnolle_huber": ("Q5, Bretagnolle-Huber", bretagnolle_huber(forward)),
        "pinsker_reverse": ("Q5.reverse, Pinsker", pinsker(backward)),
        "bretagnolle_huber_reverse": ("Q5.reverse, Bretagnolle-Huber", bretagnolle_huber(backward)),
        "hellinger": ("Q6", hellinger(c)),
    }
    out = {name: Interval.upper_bound(value, source) for name, (source, value) in upper.items()}
    if c.block_size >= c.length:
        low = hellinger_lower(c)
        out["hellinger"] = Interval(
            min(low, out["hellinger"].upper), None, out["hellinger"].upper, "certified", None, "Q6"
        )
    return out
