"""Several drafts, who is above whom (E4): ERSD's list and its peers against the optimum of their own draft law.

Notation of `multidraft`; m drafts, `P`, `Q` (V,). Exact on Fractions.
"""

from __future__ import annotations

from typing import Any

from ..arrays import Array
from .multidraft import greedy_acceptance, optimal_iid, optimal_wor
from .registry import theorem

LAWS = "laws P, Q; m >= 1 drafts"


@theorem(
    "E4.order",
    source="derived: ERSD is one lossless rule on drafts without replacement",
    statement=r"P(R \le m) \le \alpha^*_{\mathrm{wor}}(m)",
    relation="<=",
    hypotheses=f"{LAWS}, m at most the number of tokens with Q > 0: beyond, ranks are a convention, not drafts",
    status="proved",
)
def list_cap(P: Array, Q: Array, m: int) -> Any:
    """alpha*_wor(m): no lossless use of m drafts without replacement accepts more, ERSD's included."""
    return optimal_wor(P, Q, m)


@theorem(
    "E4.iid",
    source="as usually read: i.i.d. drafts with the optimal rule are the ceiling",
    statement=r"P(R \le m) \le \alpha^*_{\mathrm{iid}}(m)",
    relation="<=",
    hypotheses=f"{LAWS}, m at most the number of tokens with Q > 0",
    status="false",
    counterexample="P_i ~ 1/i, Q_i ~ 1/i^2, i <= 8, m = 2: .906043 > .880462; on P = (.4, .3, .2, .1), Q uniform .952031 < 1",
    replacement="E4.order: drafts without repetition have their own, larger optimum; ERSD and i.i.d. peers are not ordered",
)
def iid_cap(P: Array, Q: Array, m: int) -> Any:
    """alpha*_iid(m): NOT a ceiling for ERSD, whose drafts do not repeat."""
    return optimal_iid(P, Q, m)


@theorem(
    "E4.recursive",
    source="arXiv:2305.09781",
    statement=r"\text{recursive rejection on i.i.d. drafts accepts at most } \alpha^*_{\mathrm{iid}}(m)",
    relation="<=",
    hypotheses=LAWS,
    status="proved",
)
def recursive_cap(P: Array, Q: Array, m: int) -> Any:
    """alpha*_iid(m): a bound on recursive rejection with replacement, which is lossless."""
    return optimal_iid(P, Q, m)


@theorem(
    "E4.recursive_wor",
    source="arXiv:2402.14160",
    statement=r"\text{recursive rejection without replacement accepts at most } \alpha^*_{\mathrm{wor}}(m)",
    relation="<=",
    hypotheses=LAWS,
    status="proved",
)
def recursive_wor_cap(P: Array, Q: Array, m: int) -> Any:
    """alpha*_wor(m): a bound on recursive rejection without replacement, which is lossless."""
    return optimal_wor(P, Q, m)


@theorem(
    "E4.greedy",
    source="arXiv:2502.18779",
    statement=r"\text{greedy drafts, used best, accept } P(T) + \sum_{x \notin T} \min\big(P, Q / (1 - Q(T))\big)",
    relation="=",
    hypotheses="T the m - 1 likeliest tokens of Q, and one more from the rest of Q; Q has at least m tokens",
    status="proved",
)
def greedy(P: Array, Q: Array, m: int) -> Any:
    """The largest acceptance over all lossless uses of greedy drafts."""
    return greedy_acceptance(P, Q, m)
