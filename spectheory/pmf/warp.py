"""The request's own truncations, applied to laws in the order of common engines: temperature, top-k, top-p, min-p."""

from __future__ import annotations

from fractions import Fraction

from ..arrays import Array, argmax, namespace, one_hot, to_law, total, where, zeros_like
from ..errors import UsageError
from .nucleus import _descending, _inverse, nucleus
from .softmax import softmax


def top_k(p: Array, k: int) -> Array:
    """Keep exactly the `k` most probable tokens of `p` (..., V), ties by index, renormalised. Raises UsageError if k < 1."""
    p = to_law(p)
    if k != int(k) or k < 1:
        raise UsageError(f"top_k must be a whole number >= 1, not {k}")
    return _keep(p, _inverse(_descending(p)) < k)


def top_p(p: Array, top_p: float | Fraction) -> Array:
    """Keep the nucleus of `p` (..., V), never less than the argmax (also at top_p = 0), renormalised. Raises UsageError."""
    p = to_law(p)
    kept = nucleus(p, top_p)
    return one_hot(argmax(p), p) if top_p == 0 else _keep(p, kept)


def min_p(p: Array, x: float | Fraction) -> Array:
    """Keep the tokens with p >= `x` times the largest probability of the row, renormalised. Raises UsageError."""
    p = to_law(p)
    if not 0 <= x <= 1:
        raise UsageError(f"min_p must lie in [0, 1], not {x}")
    return _keep(p, p >= x * namespace(p).max(p, axis=-1, keepdims=True))


def warp(
    logits: Array,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Array:
    """Law (..., V) that a request with these settings samples from, out of `logits` (..., V). Raises as its parts."""
    law = softmax(logits, temperature)
    for setting, cut in ((top_k, _top_k), (top_p, _top_p), (min_p, _min_p)):
        law = law if setting is None else cut(law, setting)  # type: ignore[arg-type]
    return law


def _keep(p: Array, mask: Array) -> Array:
    kept = where(mask, p, zeros_like(p))
    return kept / total(kept, keepdims=True)


_top_k, _top_p, _min_p = top_k, top_p, min_p
