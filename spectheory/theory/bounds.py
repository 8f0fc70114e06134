"""Every certified number on TV(P~, P) over T tokens in one call: Q2..Q8, and the best of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import PrecisionError
from ..results import Interval
from . import lower, sequence
from .chain import Chain, chain, reached, start, transfer
from .composition import dominating_pair, sequence_tv
from .joint import joint_tv


def sequence_bounds(
    verifier: Any, model: Any, *, length: int, block_size: int, error: float = 1e-4
) -> dict[str, Interval]:
    """Certified Intervals on TV(P~, P) over `length` tokens of a token verifier on a tabular model, by name.

    Upper ends: `coupling` (Q2), `union`, `union_target` (Q3), `uniform` (Q4), `pinsker`, `bretagnolle_huber` and their
    `_reverse` (Q5), `hellinger` (Q6, both sides if K >= T), `composition` (Q7), `joint` (Q7.joint), within `error`. Lower ends:
    `lower_marginal`, `lower_count`, `lower_moments` (Q8). `best` is the highest lower end with the least upper end.
    Upper ends are not clipped: a union bound may exceed 1. Raises as `chain`.
    """
    return chain_bounds(chain(verifier, model, length=length, block_size=block_size), error)


def chain_bounds(c: Chain, error: float = 1e-4) -> dict[str, Interval]:
    """`sequence_bounds` of a chain that is already made."""
    out = sequence.intervals(c)
    out["composition"] = composition(c, error)
    out["joint"] = joint(c, error)
    for name, bound in (("marginal", lower.marginal), ("count", lower.count), ("moments", lower.moments)):
        value = min(1.0, bound(c)) * (1 - 1e-12)  # sums of at most a few thousand rounded terms
        out[f"lower_{name}"] = Interval(value, None, 1.0, "certified", None, f"Q8, {name}")
    low, high = max(i.lower for i in out.values()), min(i.upper for i in out.values())
    out["best"] = Interval(min(low, high), None, min(1.0, high), "certified", None, "the best of Q2..Q8")
    return out


def joint(c: Chain, error: float) -> Interval:
    """Q7.joint, or the trivial interval with the reason where the horizon is too long for it."""
    try:
        return joint_tv(c, error)
    except PrecisionError as refused:
        return Interval(0.0, None, 1.0, "certified", None, f"Q7.joint refused: {refused}")


def composition(c: Chain, error: float = 1e-4) -> Interval:
    """Q7 for a chain: two-sided if there is one drafted context and no bonus step, else the upper end of a dominating pair.

    Where the error budget is below the method's floor, the trivial interval says so in its source.
    """
    live = reached(start(c), transfer(c, c.out + c.p, c.p), c.length).reshape(len(c.p), -1)[:, : c.block_size]
    rows = np.flatnonzero(live.any(axis=1))
    out = c.out[rows] / c.out[rows].sum(axis=1, keepdims=True)
    try:
        if len(rows) == 1:
            return sequence_tv(out[0], c.p[rows[0]], length=c.length, block_size=c.block_size, error=error)
        pair = dominating_pair(out, c.p[rows])
        return Interval.upper_bound(sequence_tv(*pair, length=c.length, error=error).upper, "Q7, dominating pair")
    except PrecisionError as refused:
        return Interval(0.0, None, 1.0, "certified", None, f"Q7 refused: {refused}")
