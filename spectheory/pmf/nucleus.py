"""The target nucleus: the shortest prefix, by descending probability, whose mass reaches top_p.

Real systems disagree about this set because they compare a rounded running sum with a rounded threshold. Ours is
defined by correctly rounded prefix sums and a stated tolerance; rows that the tolerance decides are reported.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import Array, is_rational, namespace, to_law, to_numpy
from ..errors import UsageError

# The mass has reached top_p iff sum >= top_p - NUCLEUS_TOL: 8 ulp of 1, enough for the rounding of the stored
# probabilities themselves (`.5 + .3` is half an ulp short of `.8`), far below any probability that matters.
NUCLEUS_TOL = 8 * 2.0**-52


def check_top_p(top_p: Any) -> float | Fraction:
    """top_p as a number in [0, 1]. Raises UsageError."""
    if isinstance(top_p, bool) or not isinstance(top_p, int | float | Fraction | np.floating | np.integer):
        raise UsageError(f"top_p must be a number in [0, 1], not {top_p!r}")
    if not 0 <= top_p <= 1:
        raise UsageError(f"top_p must lie in [0, 1], not {top_p}")
    return top_p if isinstance(top_p, Fraction) else float(top_p)


def nucleus(p: Array, top_p: float | Fraction) -> Array:
    """Boolean mask (..., V) of the nucleus of the laws `p` (..., V).

    The token that crosses is kept and ties go to the lower index. `top_p = 0` is empty; `top_p = 1` is the support,
    decided without sums; any other `top_p` keeps at least the argmax. With Fractions the comparison is exact and a float
    `top_p` means the decimal it prints as (0.8 is 4/5). Raises UsageError for `top_p` outside [0, 1].
    """
    p, top_p = to_law(p), check_top_p(top_p)
    if top_p == 0:
        return p < 0
    if top_p == 1:
        return p > 0
    order = _descending(p)
    ranks = _inverse(order)
    size, _ = _boundary(p, order, top_p)
    return ranks < size[..., None]


def nucleus_size(p: Array, top_p: float | Fraction) -> Array:
    """Number of tokens (...) in the nucleus of `p` (..., V). Raises UsageError as `nucleus`."""
    mask = nucleus(p, top_p)
    sizes = to_numpy(mask).sum(axis=-1)
    return sizes if sizes.ndim else int(sizes)


def nucleus_is_ambiguous(p: Array, top_p: float | Fraction) -> Array:
    """True (...) where a prefix sum of `p` (..., V) lies within NUCLEUS_TOL of `top_p`, so rounding decides the set.

    Never with Fractions, at `top_p` 0 or at 1. Raises UsageError as `nucleus`.
    """
    p, top_p = to_law(p), check_top_p(top_p)
    if top_p in (0, 1) or is_rational(p):
        unclear = np.zeros(p.shape[:-1], dtype=bool)
    else:
        _, unclear = _boundary(p, _descending(p), top_p)
    return unclear if unclear.ndim else bool(unclear)


def _descending(p: Array) -> Array:
    """Stable order by descending probability: equal tokens by index."""
    if is_rational(p):
        return np.argsort(-p, axis=-1, kind="stable")
    xp = namespace(p)
    return xp.argsort(p, axis=-1, descending=True, stable=True)


def _inverse(order: Array) -> Array:
    """Rank of each token in the order."""
    if isinstance(order, np.ndarray):
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.broadcast_to(np.arange(order.shape[-1]), order.shape), axis=-1)
        return ranks
    return namespace(order).argsort(order, axis=-1)


def _boundary(p: Array, order: Array, top_p: float | Fraction) -> tuple[Array, Any]:
    """Nucleus sizes (...) and whether each is decided within the tolerance (NumPy bool (...))."""
    xp = namespace(p)
    if is_rational(p):
        exact = top_p if isinstance(top_p, Fraction) else Fraction(repr(float(top_p)))
        reached = np.cumsum(np.take_along_axis(p, order, axis=-1), axis=-1) >= exact
        return np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1, p.shape[-1]), np.zeros(p.shape[:-1], bool)
    threshold, width = float(top_p), p.shape[-1]
    sums = xp.cumulative_sum(xp.take_along_axis(p, order, axis=-1), axis=-1)
    size = xp.sum(xp.astype(sums < threshold - NUCLEUS_TOL, xp.int64), axis=-1) + 1
    # A running sum of V terms is off by at most V eps; only rows that this could change are summed again exactly.
    doubt = width * 2.0**-52 + 2 * NUCLEUS_TOL
    close = to_numpy(xp.any(abs(sums - threshold) <= doubt, axis=-1))
    size = xp.minimum(size, xp.full_like(size, width))
    unclear = np.zeros(close.shape, dtype=bool)
    if close.any():
        host = np.array(to_numpy(size))
        for row in map(tuple, np.argwhere(close)):
            host[row], unclear[row] = _exact_boundary(to_numpy(p[row]), to_numpy(order[row]), threshold)
        size = host if isinstance(p, np.ndarray) else xp.asarray(host, device=p.device)
    return size, unclear


def _exact_boundary(p: Any, order: Any, threshold: float) -> tuple[int, bool]:
    """One row by bisection on correctly rounded prefix sums (math.fsum): the sums grow with the length."""
    mass = p[order]

    def prefix(k: int) -> float:
        return math.fsum(mass[:k])

    low, high = 1, int(np.count_nonzero(mass)) or 1
    if prefix(high) < threshold - NUCLEUS_TOL:
        return len(mass), abs(prefix(high) - threshold) <= NUCLEUS_TOL
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if prefix(middle) >= threshold - NUCLEUS_TOL else (middle + 1, high)
    near = any(abs(prefix(k) - threshold) <= NUCLEUS_TOL for k in (low, low - 1) if k >= 1)
    return low, near
