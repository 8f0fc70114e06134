"""Two exponential races on the same noise E_i ~ Exp(1): argmin E_i / P_i and argmin E_i / Q_i, jointly.

With s, t the two winning times, every other E_k exceeds max(s Q_k, t P_k); integrating s out at fixed w = t / s leaves
integrals of rational functions of w, piecewise in closed form, so Fractions give exact values. NumPy only.
"""

from __future__ import annotations

import itertools

import numpy as np

from ..arrays import Array, align, total, zeros_like


def race_agreement(p: Array, q: Array) -> Array:
    """P(both races are won by i), (..., V): 1 / sum_j max(p_j / p_i, q_j / q_i), in O(V log V) by sorting q / p.

    A token without mass on either side never wins both. Source: theorem E1, after 2504.15475.
    """
    p, q = np.broadcast_arrays(*align(p, q))
    rows = [_agreement_row(a, b) for a, b in zip(p.reshape(-1, p.shape[-1]), q.reshape(-1, p.shape[-1]))]
    return np.array(rows, dtype=p.dtype).reshape(p.shape)


def _agreement_row(p: Array, q: Array) -> Array:
    out = zeros_like(p)
    both = np.flatnonzero((p > 0) & (q > 0))
    # The sum splits where q_j / p_j crosses q_i / p_i: before it p_j / p_i is the larger, after it q_j / q_i.
    order = both[np.argsort(q[both] / p[both])]
    ps, qs = p[order], q[order]
    before = np.cumsum(ps) + total(p[q == 0])
    after = np.cumsum(qs[::-1])[::-1] - qs + total(q[p == 0])
    with np.errstate(over="ignore"):  # a subnormal mass makes an infinite ratio, hence agreement 0
        out[order] = 1 / (before / ps + after / qs)
    return out


def race_joint(p: Array, q: Array) -> Array:
    """P(x wins the q-race and y the p-race), (V, V), for single laws (V,): row drafted x, column emitted y.

    The diagonal is `race_agreement`. O(V^4) at worst; exact on Fractions.
    """
    p, q = align(p, q)
    size = p.shape[-1]
    joint = zeros_like(p[:, None] + q[None, :])
    joint[np.arange(size), np.arange(size)] = race_agreement(p, q)
    kinks = sorted({b / a for a, b in zip(p, q) if a > 0})
    for x in range(size):
        for y in range(size):
            if x != y and q[x] > 0 and p[y] > 0:
                high = q[x] / p[x] if p[x] > 0 else None
                joint[x, y] = q[x] * p[y] * _crossing(p, q, kinks, q[y] / p[y], high)
    return joint


def _crossing(p: Array, q: Array, kinks: list[Array], low: Array, high: Array | None) -> Array:
    """Integral over w in [low, high] of 1 / g(w)^2, g(w) = sum_k max(q_k, w p_k), linear between kinks; None = infinity."""
    value = 0 * p[0]
    if high is not None and high <= low:
        return value
    points = [low, *(w for w in kinks if w > low and (high is None or w < high)), high]
    for a, b in itertools.pairwise(points):
        middle = a + 1 if b is None else (a + b) / 2
        slope, g = total(p[middle * p > q]), total(np.maximum(q, a * p))
        # int_a^b dw / (g + slope (w - a))^2 = (b - a) / (g (g + slope (b - a)))
        value = value + (1 / (slope * g) if b is None else (b - a) / (g * (g + slope * (b - a))))
    return value
