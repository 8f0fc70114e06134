"""Certified intervals from rows of which only the top tokens and the tail sums are known. NumPy only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..protocols import Truncated
from .nucleus import NUCLEUS_TOL, check_top_p

Bounds = tuple[Any, Any]
_ROUNDING = 1e-12


def truncated_total_variation(rows: Truncated) -> Bounds:
    """(lower, upper) of TV(p, q), (...). They coincide where the tails' `excess` and `deficit` were recorded.

    Over tokens known on both sides the overlap sum min(p, q) is exact. What else can overlap: a token known on one side
    only, at most the other side's cut, and tail with tail; the two tail masses bound the lot (a small linear programme
    whose optimum is greedy).
    """
    p, q, has_p, has_q = _sides(rows)
    both = has_p & has_q
    kept = np.where(both, np.minimum(p, q), 0).sum(-1)
    if rows.excess is not None and rows.deficit is not None and both[rows.ids >= 0].all():
        tv = (np.where(both, abs(p - q), 0).sum(-1) + rows.excess + rows.deficit) / 2
        return tv, tv
    only_p = np.where(has_p & ~has_q, np.minimum(p, rows.q_cut[..., None]), 0).sum(-1)
    only_q = np.where(has_q & ~has_p, np.minimum(q, rows.p_cut[..., None]), 0).sum(-1)
    from_p, from_q = np.minimum(only_p, rows.q_tail), np.minimum(only_q, rows.p_tail)
    tails = np.minimum(rows.q_tail - from_p, rows.p_tail - from_q)
    most = kept + from_p + from_q + np.maximum(tails, 0)
    return np.clip(1 - most, 0, 1), np.clip(1 - kept, 0, 1)


def truncated_nucleus_deviation(rows: Truncated, top_p: float) -> Bounds:
    """(lower, upper) of NSD's Delta = sum over the nucleus of (q - p)_+, (...), theorem N1 (2610.07822).

    The nucleus is known when it is complete among the recorded tokens above the cut; otherwise the recorded ones are a
    subset of it and the rest is bounded by what q can still hold. Raises UsageError for `top_p` outside [0, 1].
    """
    top_p = float(check_top_p(top_p))
    p, q, has_p, has_q = _sides(rows)
    if top_p == 0:
        zero = np.zeros(p.shape[:-1])
        return zero, zero
    sure = has_p & (p > rows.p_cut[..., None])
    order = np.argsort(np.where(sure, -p, np.inf), axis=-1, kind="stable")
    mass = np.take_along_axis(np.where(sure, p, 0), order, -1)
    before = np.cumsum(mass, -1) - mass
    inside = np.zeros_like(sure)
    np.put_along_axis(inside, order, before < top_p - NUCLEUS_TOL, -1)
    inside &= sure
    complete = (mass.sum(-1) >= top_p) & (top_p < 1)
    excess = np.where(has_p & has_q, np.maximum(q - p, 0), 0)
    low = np.where(inside, excess, 0).sum(-1)
    # Tokens inside whose q was not recorded hold at most the cut each and the tail together.
    blind = np.where(inside & ~has_q, np.maximum(rows.q_cut[..., None] - p, 0), 0).sum(-1)
    high = low + np.minimum(blind, rows.q_tail)
    rest = rows.q_tail if rows.excess is None else np.minimum(rows.q_tail, rows.excess)
    loose = excess.sum(-1) + np.where(has_q & ~has_p, q, 0).sum(-1) + rest
    _, tv = truncated_total_variation(rows)
    return low, np.minimum(np.where(complete, high, np.maximum(loose, high)), np.maximum(tv, low))


def truncated_kl(rows: Truncated) -> Bounds:
    """(lower, upper) of KL(p || q) in nats, (...): merging the tail can only lose (data processing); no upper bound exists."""
    p, q, has_p, has_q = _sides(rows)
    both = has_p & has_q
    # The tails are differences of sums, off by rounding: a tail mass is shrunk on the side of p, grown on that of q.
    p_rest = np.maximum(1 - np.where(both, p, 0).sum(-1) - _ROUNDING, 0)
    q_rest = np.maximum(1 - np.where(both, q, 0).sum(-1), 0) + _ROUNDING
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(both & (p > 0), p * np.log(p / q), 0).sum(-1)
        tail = np.where(p_rest > 0, p_rest * np.log(p_rest / q_rest), -q_rest)
    return np.maximum(kept + tail - 100 * _ROUNDING, 0), np.full(kept.shape, np.inf)


def _sides(rows: Truncated) -> tuple[Any, Any, Any, Any]:
    """Values with gaps as 0, and which are known."""
    real = rows.ids >= 0
    has_p, has_q = real & ~np.isnan(rows.p), real & ~np.isnan(rows.q)
    return np.where(has_p, rows.p, 0), np.where(has_q, rows.q, 0), has_p, has_q
