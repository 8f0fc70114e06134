"""Distances between laws (..., V), in nats where logarithms occur, summed over the last axis."""

from __future__ import annotations

import math

from ..arrays import (
    Array,
    align,
    log0,
    minimum,
    namespace,
    ratio,
    scalar,
    to_float,
    to_law,
    total,
    where,
    xlogy,
    zeros_like,
)
from ..errors import UsageError


def total_variation(p: Array, q: Array) -> Array:
    """TV(p, q) = 1/2 sum |p - q|, (...). Exact on Fractions."""
    p, q = align(p, q)
    return scalar(total(abs(p - q)) / 2)


def overlap(p: Array, q: Array) -> Array:
    """sum min(p, q) = 1 - TV(p, q), (...): the acceptance rate of the standard rule. Exact on Fractions."""
    p, q = align(p, q)
    return scalar(total(minimum(p + 0 * q, q + 0 * p)))


def kl(p: Array, q: Array) -> Array:
    """KL(p || q) = sum p ln(p / q) in nats, (...); infinite if p has mass where q has none; 0 ln 0 = 0.

    Summed as p (d - ln(1 + d)), d = (q - p) / p: every term is >= 0, so near-identical laws keep their digits.
    """
    p, q = (to_float(x) for x in align(p, q))
    xp = namespace(p, q)
    p, q = p + 0 * q, q + 0 * p
    ones, near = xp.ones_like(p), (p > 0) & (q <= 2 * p) & (p <= 2 * q)
    d = xp.where(near, (q - p) / xp.where(near, p, ones), 0 * p)
    close = p * (d - xp.log1p(d))
    far = q - p + xlogy(p, p) - xp.where(near, 0 * p, xlogy(p, q))
    return scalar(xp.sum(xp.where(near, close, far), axis=-1))


def renyi(p: Array, q: Array, alpha: float) -> Array:
    """Renyi divergence of order `alpha` in [0, inf] in nats, (...); alpha = 1 is KL, inf is the log of the worst ratio.

    Raises UsageError for a negative or NaN order.
    """
    if not alpha >= 0:
        raise UsageError(f"the Renyi order must be >= 0, not {alpha}")
    if alpha == 1:
        return kl(p, q)
    p, q = (to_float(x) for x in align(p, q))
    xp = namespace(p, q)
    p, q = p + 0 * q, q + 0 * p
    both, ones, low = (p > 0) & (q > 0), xp.ones_like(p), xp.full_like(p, -math.inf)
    lp, lq = xp.log(xp.where(both, p, ones)), xp.log(xp.where(both, q, ones))
    if alpha == math.inf:
        value = xp.max(xp.where(both, lp - lq, low), axis=-1)
    else:
        terms = xp.where(both, alpha * lp + (1 - alpha) * lq, low)
        top = xp.max(terms, axis=-1, keepdims=True)
        top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
        value = (log0(xp.sum(xp.exp(terms - top), axis=-1)) + top[..., 0]) / (alpha - 1)
    outside = xp.any((p > 0) & (q == 0), axis=-1)
    return scalar(xp.where(outside, xp.full_like(value, math.inf), value) if alpha > 1 else value)


def hellinger(p: Array, q: Array) -> Array:
    """Hellinger distance sqrt(1 - BC), BC = sum sqrt(p q), (...), computed without cancellation."""
    p, q = (to_float(x) for x in align(p, q))
    xp = namespace(p, q)
    return scalar(xp.sqrt(total((xp.sqrt(p) - xp.sqrt(q)) ** 2) / 2))


def chi_square(p: Array, q: Array) -> Array:
    """chi2(p || q) = sum (p - q)^2 / q, (...); infinite if p has mass where q has none. Exact on Fractions if finite."""
    p, q = align(p, q)
    p, q = p + 0 * q, q + 0 * p
    if bool(((p > 0) & (q == 0)).any()):
        p, q = to_float(p), to_float(q)
        return scalar(total(where((p > 0) & (q == 0), math.inf + zeros_like(p), ratio((p - q) ** 2, q, 0))))
    return scalar(total(ratio((p - q) ** 2, q, 0)))


def entropy(p: Array) -> Array:
    """Shannon entropy -sum p ln p in nats, (...); 0 ln 0 = 0."""
    p = to_law(p)
    return scalar(0.0 - total(xlogy(p, p)))
