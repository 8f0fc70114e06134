"""The standard residual law: what is left of the target where the draft falls short."""

from __future__ import annotations

from ..arrays import Array, align, maximum, ratio, total, where


def residual(p: Array, q: Array) -> Array:
    """r = (p - q)_+ / sum (p - q)_+ of laws (..., V); `p` itself where p = q (a rejection forced by rounding).

    Source: Leviathan et al. 2211.17192, Chen et al. 2302.01318.
    """
    p, q = align(p, q)
    excess = maximum(p - q, 0)
    mass = total(excess, keepdims=True)
    return where(mass > 0, ratio(excess, mass + 0 * excess, 0), p + 0 * excess)
