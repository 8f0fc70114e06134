"""NSD, Nucleus Speculative Decoding: its one-step deviation is exactly the draft's excess inside the nucleus.

Source: 2610.07822; N4 and N7 after Yin et al. 2411.00841. D = TV(p, q), Delta = sum over the nucleus of (q - p)_+.
"""

from __future__ import annotations

from ..arrays import (
    Array,
    align,
    log0,
    maximum,
    minimum,
    namespace,
    ones_like,
    ratio,
    scalar,
    to_float,
    to_law,
    total,
    where,
    zeros_like,
)
from ..pmf import chi_square, nucleus, overlap, total_variation
from .bounds import sequence_bounds as sequence_bounds  # part of this paper's public names
from .registry import theorem

NSD = "arXiv:2610.07822"


@theorem(
    "N1",
    source=NSD,
    statement=r"\mathrm{TV}(\tilde p, p) = \Delta := \sum_{x \in N} (q(x) - p(x))_+",
    relation="=",
    hypotheses="laws p, q; any top_p in [0, 1]; standard residual",
    status="proved",
)
def step_deviation(p: Array, q: Array, top_p: float) -> Array:
    """Delta, (...): how far one NSD step is from the target in total variation. Exact on Fractions."""
    p, q = align(p, q)
    excess = maximum(q - p, 0)
    return scalar(total(where(nucleus(p, top_p) & (excess >= 0), excess, zeros_like(excess))))


@theorem(
    "N2",
    source=NSD,
    statement=r"\beta = 1 - \mathrm{TV}(p, q) + \Delta",
    relation="=",
    hypotheses="laws p, q; any top_p in [0, 1]",
    status="proved",
)
def acceptance_rate(p: Array, q: Array, top_p: float) -> Array:
    """beta = 1 - D + Delta, (...): what the deviation buys, one for one. So P(reject) + TV = D: the optimal line."""
    return 1 - total_variation(p, q) + step_deviation(p, q, top_p)


@theorem(
    "N3",
    source=NSD,
    statement=r"\tilde p = p + (q - p)_+ 1_N - \tfrac{\Delta}{D} (p - q)_+",
    relation="=",
    hypotheses="laws p, q; any top_p in [0, 1]; Delta/D := 0 where D = 0",
    status="proved",
)
def output_law(p: Array, q: Array, top_p: float) -> Array:
    """The law (..., V) that one NSD step emits. Exact on Fractions."""
    p, q = align(p, q)
    gain = maximum(q - p, 0)
    gain = where(nucleus(p, top_p) & (gain >= 0), gain, zeros_like(gain))
    loss = maximum(p - q, 0)
    share = ratio(total(gain, keepdims=True), total(loss, keepdims=True), 0)
    return p + gain - share * loss


@theorem(
    "N4",
    source="arXiv:2411.00841; arXiv:2610.07822",
    statement=r"\mathrm{TV}(q A + (1 - \beta) r,\ p) \ge \Delta \text{ for every law } r",
    relation=">=",
    hypotheses="laws p, q, r; NSD's acceptance A",
    status="proved",
)
def least_deviation(p: Array, q: Array, top_p: float) -> Array:
    """The least TV, (...), that any residual reaches with NSD's acceptance: Delta, so the standard residual is optimal."""
    return step_deviation(p, q, top_p)


@theorem(
    "N4.iff",
    source="arXiv:2411.00841; arXiv:2610.07822",
    statement=r"\mathrm{TV}(q A + (1 - \beta) r,\ p) = \Delta \iff (1 - \beta) r \le (p - q)_+",
    relation="=",
    hypotheses="laws p, q, r; NSD's acceptance A",
    status="proved",
)
def residual_is_optimal(p: Array, q: Array, top_p: float, r: Array) -> Array:
    """True (...) where the residual `r` (..., V) reaches the least TV. Resampling from p does not when 0 < Delta < D."""
    p, q, r = align(p, q, r)
    rejection = 1 - total(q * _acceptance(p, q, top_p), keepdims=True)
    return ((rejection * r) <= maximum(p - q, 0)).all(-1)


@theorem(
    "N4.resample",
    source="arXiv:2411.00841; arXiv:2610.07822",
    statement=r"0 < \Delta < \mathrm{TV}(p, q) \Rightarrow \mathrm{TV}(q A + (1 - \beta) p,\ p) > \Delta",
    relation=">=",
    hypotheses="laws p, q; NSD's acceptance A; the residual is the target itself",
    status="proved",
)
def resampling_is_worse(p: Array, q: Array, top_p: float) -> Array:
    """True (...) where resampling from the target must deviate by more than the standard residual does."""
    distance, delta = _as_array(total_variation(p, q)), _as_array(step_deviation(p, q, top_p))
    return (delta > 0) & (delta < distance)


@theorem(
    "N5",
    source=NSD,
    statement=r"t \le t' \Rightarrow \Delta_t \le \Delta_{t'} \text{ and } \beta_t \le \beta_{t'}",
    relation="<=",
    hypotheses="laws p, q; 0 <= t <= t' <= 1",
    status="proved",
)
def monotone_bound(p: Array, q: Array, larger_top_p: float) -> tuple[Array, Array]:
    """(Delta, beta) at the larger top_p, (...) each: no smaller top_p exceeds either. There is a jump at top_p = 0."""
    return step_deviation(p, q, larger_top_p), acceptance_rate(p, q, larger_top_p)


@theorem(
    "N5.cap",
    source=NSD,
    statement=r"0 \le \Delta \le \mathrm{TV}(p, q)",
    relation="<=",
    hypotheses="laws p, q; any top_p in [0, 1]",
    status="proved",
)
def deviation_cap(p: Array, q: Array) -> Array:
    """D = TV(p, q), (...): no top_p makes NSD deviate by more."""
    return total_variation(p, q)


@theorem(
    "N5.draft",
    source=NSD,
    statement=r"\text{at top-}p = 1:\ \tilde p = q \iff \operatorname{supp} q \subseteq \operatorname{supp} p",
    relation="=",
    hypotheses="laws p, q; top_p = 1",
    status="proved",
)
def degenerates_to_draft(p: Array, q: Array) -> Array:
    """True (...) where NSD at top_p = 1 is sampling from the draft: Delta = D, acceptance 1, output q."""
    p, q = align(p, q)
    return ((q == 0) | (p > 0)).all(-1)


@theorem(
    "N6.ratio",
    source=NSD,
    statement=r"\tilde p \ge (1 - \Delta / D)\, p",
    relation=">=",
    hypotheses="laws p, q; any top_p; 0/0 := 1 in ratios, Delta/D := 0 where D = 0",
    status="proved",
)
def least_ratio(p: Array, q: Array, top_p: float) -> Array:
    """1 - Delta/D, (...): a lower bound on the output's ratio to the target, for every token."""
    return 1 - ratio(_as_array(step_deviation(p, q, top_p)), _as_array(total_variation(p, q)), 0)


@theorem(
    "N6.kl",
    source=NSD,
    statement=r"\mathrm{KL}(p \,\|\, \tilde p) \le -\ln(1 - \Delta / D)",
    relation="<=",
    hypotheses="laws p, q; any top_p",
    status="proved",
)
def kl_target_bound(p: Array, q: Array, top_p: float) -> Array:
    """-ln(1 - Delta/D) nats, (...): a bound on KL(target || output); infinite where Delta = D > 0."""
    return scalar(0.0 - log0(to_float(_as_array(least_ratio(p, q, top_p)))))


@theorem(
    "N6.max_ratio",
    source=NSD,
    statement=r"\tilde p / p \le \max(1, \max_N q/p)",
    relation="<=",
    hypotheses="laws p, q; any top_p; 0/0 := 1, max over an empty nucleus 1",
    status="proved",
)
def largest_ratio(p: Array, q: Array, top_p: float) -> Array:
    """max(1, max over the nucleus of q/p), (...): a bound on the output's ratio to the target, for every token."""
    p, q = align(p, q)
    over = ratio(q + 0 * p, p + 0 * q, 1)
    over = where(nucleus(p, top_p) & (over > 1), over, ones_like(over))
    return scalar(namespace(over).max(over, axis=-1))


@theorem(
    "N6.chi2",
    source=NSD,
    statement=r"\mathrm{KL}(\tilde p \,\|\, p) \le \ln(1 + \chi^2(\tilde p \,\|\, p))",
    relation="<=",
    hypotheses="laws p, q; any top_p",
    status="proved",
)
def kl_output_bound(p: Array, q: Array, top_p: float) -> Array:
    """ln(1 + chi2(output || target)) nats, (...): a bound on KL(output || target). Always finite: output << target."""
    chi2 = chi_square(output_law(p, q, top_p), p)
    return scalar(log0(to_float(_as_array(1 + chi2))))


@theorem(
    "N6.infinite",
    source=NSD,
    statement=r"\mathrm{KL}(p \,\|\, \tilde p) = \infty \iff \Delta = D > 0 \text{ and } q(x) = 0 < p(x) \text{ for some } x",
    relation="=",
    hypotheses="laws p, q; any top_p",
    status="proved",
)
def kl_target_is_infinite(p: Array, q: Array, top_p: float) -> Array:
    """True (...) where the output gives no mass to a token that the target emits."""
    p, q = align(p, q)
    distance = _as_array(total_variation(p, q))
    whole = (_as_array(step_deviation(p, q, top_p)) == distance) & (distance > 0)
    return whole & ((q == 0) & (p > 0)).any(-1)


@theorem(
    "N6.delta_alone",
    source="a common reading: a small deviation makes every divergence small",
    statement=r"\mathrm{KL}(p \,\|\, \tilde p) \le -\ln(1 - \Delta)",
    relation="<=",
    hypotheses="laws p, q; any top_p",
    status="false",
    counterexample="p = (1/2, 1/2), q = (1, 0), top_p = 1/2: Delta = 1/2, KL(p || output) is infinite",
    replacement="N6.kl: -ln(1 - Delta / D); no function of Delta alone bounds either divergence",
)
def kl_by_delta_alone(p: Array, q: Array, top_p: float) -> Array:
    """-ln(1 - Delta) nats, (...). NOT a bound: see the counterexample; N6.kl is."""
    return scalar(0.0 - log0(1 - to_float(_as_array(step_deviation(p, q, top_p)))))


@theorem(
    "N7",
    source="arXiv:2411.00841",
    statement=r"\min_r \mathrm{TV}(q A + (1 - \beta) r,\ p) = \sum (q A - p)_+",
    relation="=",
    hypotheses="laws p, q; ANY acceptance rule A in [0, 1]",
    status="proved",
)
def least_deviation_of(p: Array, q: Array, acceptance: Array) -> Array:
    """sum (qA - p)_+, (...): the least TV that any residual reaches with the acceptance rule A (..., V)."""
    p, q, a = align(p, q, acceptance)
    return scalar(total(maximum(q * a - p, 0)))


@theorem(
    "N7.over",
    source="arXiv:2411.00841",
    statement=r"A \ge \min(1, p/q) \Rightarrow \min_r \mathrm{TV} = \sum q A - \sum \min(p, q)",
    relation="=",
    hypotheses="laws p, q; A between min(1, p/q) and 1",
    status="proved",
)
def extra_acceptance(p: Array, q: Array, acceptance: Array) -> Array:
    """sum qA - sum min(p, q), (...): for an over-accepting rule the least TV is its extra acceptance."""
    p, q, a = align(p, q, acceptance)
    return scalar(total(q * a) - overlap(p, q))


def _acceptance(p: Array, q: Array, top_p: float) -> Array:
    """NSD's acceptance, written out here: theory does not call the verifiers that it describes."""
    sure = nucleus(p, top_p) | (q <= p)
    return where(sure, ones_like(p + 0 * q), ratio(minimum(p + 0 * q, q + 0 * p), q + 0 * p, 1))


def _as_array(x: Array) -> Array:
    """Row results may be plain numbers; what follows wants arrays."""
    return x if hasattr(x, "shape") else to_law(x)
