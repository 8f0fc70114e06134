"""Laws that checks meet beside the search: one pair a synthetic family, and rows of the recorded sample."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ..models.synthetic import FAMILIES, synthetic_pairs
from ..protocols import Block

FAMILY_VOCAB = 64
UNIT = 10**6  # coarse laws are multiples of a millionth before they are normalised


@cache
def family_pairs() -> tuple[tuple[str, Any, Any], ...]:
    """(label, p, q) for one pair of laws (64,) float64 of each synthetic family."""
    rows = []
    for name in FAMILIES:
        p, q = synthetic_pairs(name, 1, FAMILY_VOCAB)
        rows.append((f"family {name}", p[0], q[0]))
    return tuple(rows)


@cache
def recorded_blocks() -> tuple[Block, ...]:
    """The blocks of the embedded sample: real target and draft laws over the full vocabulary."""
    from .. import logits

    return tuple(logits.sample())


@cache
def recorded_pairs() -> tuple[tuple[str, Any, Any], ...]:
    """(label, p, q) for one row of each recorded block, the position moving on from block to block."""
    rows = []
    for n, block in enumerate(recorded_blocks()):
        at = n % block.size
        rows.append((f"recorded block {n}, position {at}", np.asarray(block.p)[at], np.asarray(block.q)[at]))
    return tuple(rows)


def coarse(p: Any, q: Any, size: int = 5) -> tuple[Any, Any]:
    """Laws (..., V) merged to (..., `size`) Fractions: the tokens of most mass under p + q (summed over the leading

    axes), the rest as one. Merging commutes with no rule, so the result is an instance in its own right, close to a
    real one in shape. Masses are rounded to millionths and normalised.
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    weight = p.reshape(-1, p.shape[-1]).sum(0) + q.reshape(-1, q.shape[-1]).sum(0)
    head = np.sort(np.argsort(-weight, kind="stable")[: size - 1])
    return _merge(p, head), _merge(q, head)


def _merge(p: Any, head: Any) -> Any:
    top = p[..., head]
    rest = np.maximum(1 - top.sum(-1, keepdims=True), 0)
    units = np.rint(np.concatenate([top, rest], -1) * UNIT).astype(np.int64)
    total = units.sum(-1, keepdims=True)
    return np.array([Fraction(int(u), int(t)) for u, t in np.broadcast(units, total)], dtype=object).reshape(
        units.shape
    )
