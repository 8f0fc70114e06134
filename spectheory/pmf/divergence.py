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
    ones, near = xp.ones_like(p), (p > 0) & (q > 0) & (q <= 2 * p)
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
    lp, lq, low = log0(p), log0(q), xp.full_like(p, -math.inf)
    if alpha == math.inf:
        gap = xp.where(p > 0, xp.where(q > 0, lp - xp.where(q > 0, lq, 0 * lq), -low), low)
        return scalar(xp.max(gap, axis=-1))
    both = (p > 0) & (q > 0)
    terms = xp.where(both, alpha * xp.where(both, lp, 0 * p) + (1 - alpha) * xp.where(both, lq, 0 * q), low)
    if alpha > 1:
        terms = xp.where((p > 0) & (q == 0), -low, terms)
    top = xp.max(terms, axis=-1, keepdims=True)
    finite = xp.isfinite(top)
    shift = xp.where(finite, top, 0 * top)
    mass = log0(xp.sum(xp.exp(xp.where(finite, terms - shift, low)), axis=-1)) + shift[..., 0]
    mass = xp.where(top[..., 0] == math.inf, top[..., 0], mass)
    return scalar(mass / (alpha - 1))


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
