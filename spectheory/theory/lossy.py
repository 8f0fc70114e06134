"""Lossy token rules: what each emits, and where it lies on the plane of acceptance and deviation.

D = TV(p, q), beta the acceptance rate. Every over-accepting rule with the standard residual lies on the line
P(reject) + TV(emitted, p) = D, below which no rule can lie. Proofs: docs/theory/lossy.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import (
    Array,
    align,
    argmax,
    maximum,
    minimum,
    namespace,
    one_hot,
    peak,
    scalar,
    to_float,
    total,
    where,
    zeros_like,
)
from ..pmf import entropy, kl, overlap, residual, total_variation
from .registry import theorem

LINE = "arXiv:2411.00841"
DIVERSED, EARS, MEDUSA, FSD = "arXiv:2604.07622", "arXiv:2512.13194", "arXiv:2401.10774", "arXiv:2502.20704"
MENTORED, SGLANG, CACTUS = "Tran-Thien 2023", "SGLang speculative_accept_threshold", "arXiv:2604.04987"


@theorem(
    "V.line",
    source=LINE,
    statement=r"P(\text{reject}) + \mathrm{TV}(\tilde p, p) \ge \mathrm{TV}(p, q)",
    relation=">=",
    hypotheses="any acceptance A in [0, 1], any residual, dependent on the rejected token or not; drafts from q",
    status="proved",
)
def optimal_line(p: Array, q: Array) -> Array:
    """TV(p, q), (...): no rule has a smaller sum of rejection probability and deviation."""
    return total_variation(p, q)


@theorem(
    "V.ensemble",
    source=DIVERSED,
    statement=r"\tilde p = w p + (1 - w) q",
    relation="=",
    hypotheses="laws p, q; 0 <= w <= 1; A = min(1, v/q), standard residual",
    status="proved",
)
def ensemble_law(p: Array, q: Array, weight: Any) -> Array:
    """What the ensemble rule emits, (..., V): the mixture it aims at, exactly."""
    p, q = align(p, q)
    return weight * p + (1 - weight) * q


@theorem(
    "V.ensemble.line",
    source=DIVERSED,
    statement=r"\mathrm{TV}(\tilde p, p) = (1 - w) D,\quad \beta = 1 - w D",
    relation="=",
    hypotheses="laws p, q; 0 <= w <= 1",
    status="proved",
)
def ensemble_figures(p: Array, q: Array, weight: Any) -> tuple[Any, Any]:
    """(deviation, acceptance) of the ensemble rule: linear in the weight, along the optimal line."""
    distance = total_variation(p, q)
    return (1 - weight) * distance, 1 - weight * distance


@theorem(
    "V.slack",
    source=LINE,
    statement=r"\mathrm{TV}(\tilde p, p) = \sum \min(q, p + s q) - \sum \min(q, p),\quad s = \mathrm{tol}\,(1 - \max p)",
    relation="=",
    hypotheses="laws p, q; 0 <= tol <= 1; standard residual",
    status="proved",
)
def slack_deviation(p: Array, q: Array, tolerance: Any) -> Array:
    """Deviation of additive slack, (...): its extra acceptance (N7), so it lies on the optimal line."""
    p, q = align(p, q)
    return scalar(total(minimum(q + 0 * p, p + tolerance * (1 - peak(p)) * q))) - overlap(p, q)


@theorem(
    "V.slack.bound",
    source=EARS,
    statement=r"\mathrm{TV}(\tilde p, p) \le \mathrm{tol}\,(1 - \max p)\; q(\{q > p\})",
    relation="<=",
    hypotheses="laws p, q; 0 <= tol <= 1; standard residual",
    status="proved",
)
def slack_bound(p: Array, q: Array, tolerance: Any) -> Array:
    """A bound on the deviation of additive slack, (...): the slack, on the draft's mass where it exceeds the target."""
    p, q = align(p, q)
    return scalar(total(tolerance * (1 - peak(p)) * where(q > p, q + 0 * p, zeros_like(q + 0 * p))))


@theorem(
    "V.mentored",
    source=MENTORED,
    statement=r"\tilde p = \mathrm{median}(p/\beta, q, p/\alpha),\quad \sum \tilde p = 1",
    relation="=",
    hypotheses="laws p, q; 0 < alpha <= 1 <= beta; some token is rejected",
    status="proved",
)
def mentored_law(p: Array, q: Array, alpha: Any) -> Array:
    """What mentored decoding emits, one row (V,); beta exactly, from the sorted breakpoints q / p."""
    p, q = align(p, q)
    rejected = total(maximum(q - p / alpha, 0))
    if rejected == 0:
        return q
    return maximum(minimum(q, p / alpha), _inverse_beta(p, q, rejected) * p)


def _inverse_beta(p: Array, q: Array, rejected: Any) -> Any:
    """t with sum (t p - q)_+ = rejected > 0, t <= 1: between two breakpoints the sum is linear in t."""

    def excess(t: Any) -> Any:
        return total(maximum(t * p - q, 0))

    points = sorted({x / y for x, y in zip(q, p) if y > 0 and x < y} | {q[0] * 0 + 1})
    low = max((t for t in points if excess(t) <= rejected), default=points[0])
    inside = (p > 0) & (q <= low * p)
    slope = total(where(inside, p, 0 * p))
    return low + (rejected - excess(low)) / slope


@theorem(
    "V.mentored.optimal",
    source=MENTORED,
    statement=r"\sum \min(q, p') \le \beta_{\mathrm{acc}} + \frac{\mathrm{KL}(p \| p') - \mathrm{KL}(p \| \tilde p)}{\beta - \alpha}"
    r"\ \text{for every law } p'",
    relation="<=",
    hypotheses="laws p, q, p'; 0 < alpha < beta; so no rule with KL(p||p') <= KL(p||p~) accepts more than mentored decoding",
    status="proved",
)
def mentored_acceptance_bound(p: Array, q: Array, alpha: Any, other: Array) -> float:
    """The most acceptance a rule that emits `other` (V,) can have, from mentored decoding's own figures at `alpha` < 1."""
    p, q, other = (to_float(x) for x in align(p, q, other))
    alpha = float(alpha)
    rejected = total(maximum(q - p / alpha, 0))
    if rejected <= 0:
        return 1.0
    inverse = float(_inverse_beta(p, q, rejected))
    law = maximum(minimum(q, p / alpha), inverse * p)
    return float(1 - rejected + (kl(p, other) - kl(p, law)) / (1 / inverse - alpha))


@theorem(
    "V.typical.target",
    source=MEDUSA,
    statement=r"\mathrm{TV}(\tilde p, p) = \sum_{x \in S} (q(x) - q(S) p(x))_+,\quad S = \{p > \min(\epsilon, \delta e^{-H(p)})\}",
    relation="=",
    hypotheses="laws p, q; correction drawn from p",
    status="proved",
)
def typical_target_deviation(p: Array, q: Array, epsilon: Any, delta: Any) -> Array:
    """Deviation of typical acceptance with correction p, (...): q(S) TV(q given S, p)."""
    p, q = align(p, q)
    inside = _typical_set(p, epsilon, delta)
    kept = where(inside & (q >= 0), q + 0 * p, zeros_like(q + 0 * p))
    return scalar(total(maximum(kept - total(kept, keepdims=True) * p, 0)))


@theorem(
    "V.typical.argmax",
    source=MEDUSA,
    statement=r"\mathrm{TV}(\tilde p, p) = \sum_{x \in S,\, x \ne t} (q - p)_+ + (q(t) 1_S(t) + 1 - q(S) - p(t))_+,\quad t = \arg\max p",
    relation="=",
    hypotheses="laws p, q; correction argmax p",
    status="proved",
)
def typical_argmax_deviation(p: Array, q: Array, epsilon: Any, delta: Any) -> Array:
    """Deviation of typical acceptance with correction argmax p, (...)."""
    p, q = align(p, q)
    inside = _typical_set(p, epsilon, delta)
    kept = where(inside & (q >= 0), q + 0 * p, zeros_like(q + 0 * p))
    top = one_hot(argmax(p), p) == 1
    shift = where(top, kept + 1 - total(kept, keepdims=True), kept) - p
    return scalar(total(maximum(shift, 0)))


def _typical_set(p: Array, epsilon: Any, delta: Any) -> Array:
    p = to_float(p)
    xp = namespace(p)
    return p > xp.minimum(float(delta) * xp.exp(-xp.asarray(entropy(p))), xp.asarray(float(epsilon)))[..., None]


@theorem(
    "V.fuzzy",
    source=FSD,
    statement=r"\mathrm{TV}(\tilde p, p) = D\, 1[\mathrm{div}(p, q) \le T]",
    relation="=",
    hypotheses="laws p, q; correction drawn from p",
    status="proved",
)
def fuzzy_deviation(p: Array, q: Array, threshold: Any, divergence: Callable[[Array, Array], Array]) -> Array:
    """Deviation of fuzzy acceptance, (...): the draft's whole distance where it is taken, none elsewhere."""
    distance = total_variation(p, q)
    return where(divergence(p, q) <= threshold, distance, 0 * distance)


@theorem(
    "V.fuzzy.bound",
    source="Pinsker; Jensen-Shannon by Pinsker to the midpoint",
    statement=r"\mathrm{TV}(\tilde p, p) \le T,\ \sqrt{T / 2},\ \sqrt{2 T}\ \text{for div = TV, KL, JS (nats)}",
    relation="<=",
    hypotheses="laws p, q; threshold T",
    status="proved",
)
def fuzzy_bounds(threshold: Any) -> dict[str, float]:
    """Bound on the deviation of fuzzy acceptance, by divergence."""
    t = float(threshold)
    return {"tv": t, "kl": (t / 2) ** 0.5, "js": (2 * t) ** 0.5}


@theorem(
    "V.thresholds.single",
    source=SGLANG,
    statement=r"q = \delta_x:\quad \mathrm{TV}(\tilde p, p) = A(x) - p(x)",
    relation="=",
    hypotheses="one deterministic draft x; A = 1 if p(x) >= single, else min(1, p(x)/acc); residual p without x",
    status="proved",
)
def thresholds_single(p: Array, x: int, single: Any, acc: Any) -> Any:
    """Deviation after one deterministic draft: the acceptance it gains over sample-and-match; p is one row (V,)."""
    p = align(p)[0]
    return scalar(_thresholds_acceptance(p, single, acc)[x] - p[x])


@theorem(
    "V.thresholds",
    source=SGLANG,
    statement=r"\mathrm{TV}(\tilde p, p) \le \sum q (A - p)",
    relation="<=",
    hypotheses="laws p, q; drafts from q; residual p without x; equality for one deterministic draft, 0 at single = acc = 1",
    status="proved",
)
def thresholds_bound(p: Array, q: Array, single: Any, acc: Any) -> Array:
    """A bound on the deviation of the two-threshold rule, (...): its extra acceptance over sample-and-match."""
    p, q = align(p, q)
    return scalar(total(q * (_thresholds_acceptance(p, single, acc) - p)))


def _thresholds_acceptance(p: Array, single: Any, acc: Any) -> Array:
    return where(p >= single, 1 + zeros_like(p), minimum(p / acc, 1))


@theorem(
    "V.cactus",
    source=CACTUS,
    statement=r"\chi^2(h^{(x)} \| p) \le 2 d,\ \text{with equality where } h_x < 1",
    relation="<=",
    hypotheses="law p with p(x) > 0; h_x = min(1, p + sqrt(2 d p (1 - p))), the rest of p scaled down",
    status="proved",
)
def cactus_budget(budget: float) -> float:
    """The chi-square budget that the law aimed at after drafting x respects."""
    return 2 * budget


@theorem(
    "V.cactus.emitted",
    source=CACTUS,
    statement=r"\chi^2(\tilde p \| p) \le 2 d",
    relation="<=",
    hypotheses="laws p, q, budget d >= 0",
    status="false",
    counterexample="p = (1/4, 1/4, 1/2), q = (1/2, 1/2, 0), d = 1/50: chi2(p~ || p) = 3/25, three times 2 d",
    replacement="V.cactus for the law aimed at, V.cactus.chi2 for what is emitted",
)
def cactus_emitted(budget: float) -> float:
    """The claim that the emitted law respects the budget too. False: the bends of several tokens add up."""
    return 2 * budget


@theorem(
    "V.cactus.chi2",
    source="this project, from V.cactus.line",
    statement=r"\chi^2(\tilde p \| p) \le 2 d \sum_{q > p} (1 - p) + \mathrm{TV}(\tilde p, p)",
    relation="<=",
    hypotheses="laws p, q; budget d >= 0; residual (h^(x) - q)_+",
    status="proved",
)
def cactus_chi2_bound(p: Array, q: Array, budget: float) -> Array:
    """A bound on chi2(emitted || p) of Cactus, (...): each token that the draft favours can spend the budget once."""
    p, q = (to_float(x) for x in align(p, q))
    favoured = where(q > p, 1 - p + 0 * q, 0 * p * q)
    return scalar(2 * budget * total(favoured)) + cactus_deviation(p, q, budget)


@theorem(
    "V.cactus.line",
    source="this project; N7 for the lower side",
    statement=r"\mathrm{TV}(\tilde p, p) = \sum (\min(q, h) - p)_+ = \beta - (1 - D)",
    relation="=",
    hypotheses="laws p, q, budget d >= 0; residual (h^(x) - q)_+: Cactus lies on the optimal line",
    status="proved",
)
def cactus_deviation(p: Array, q: Array, budget: float) -> Array:
    """Deviation of Cactus, (...): although its residual depends on the rejected token, it wastes nothing."""
    p, q = (to_float(x) for x in align(p, q))
    xp = namespace(p)
    bent = minimum(p + xp.sqrt(2 * budget * p * (1 - p)), 1)
    return scalar(total(maximum(minimum(q + 0 * p, bent + 0 * q) - p, 0)))


@theorem(
    "V.constant",
    source="definition; the standard residual of 2211.17192",
    statement=r"\tilde p = c\, q + (1 - c)\, (p - q)_+ / D",
    relation="=",
    hypotheses="laws p, q; 0 <= c <= 1; p in place of the residual where D = 0",
    status="proved",
)
def constant_law(p: Array, q: Array, rate: Any) -> Array:
    """What constant acceptance emits, (..., V)."""
    p, q = align(p, q)
    return rate * q + (1 - rate) * residual(p, q)


@theorem(
    "V.constant.least",
    source="N7 with A = c",
    statement=r"\mathrm{TV}(\tilde p, p) \ge \sum (c q - p)_+",
    relation=">=",
    hypotheses="laws p, q; 0 <= c <= 1; any residual",
    status="proved",
)
def constant_least_deviation(p: Array, q: Array, rate: Any) -> Array:
    """The least deviation that accepting everything with probability c can have, (...)."""
    p, q = align(p, q)
    return scalar(total(maximum(rate * q - p, 0)))


def bent_law(p: Array, x: int, budget: float) -> Array:
    """h^(x), one row (V,): x raised to h_x, the rest of p scaled to keep the sum; p itself where p(x) = 1."""
    p = to_float(align(p)[0])
    raised = min(1.0, float(p[x] + (2 * budget * p[x] * (1 - p[x])) ** 0.5))
    rest = p * ((1 - raised) / (1 - p[x]) if p[x] < 1 else 0.0)
    return where(one_hot(namespace(p).asarray(x), p) == 1, 0 * p + raised, rest)
