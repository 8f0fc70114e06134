"""The one gate for outside data: what passes is a law (or usable logits); what does not is named by row and cause."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, is_rational, namespace, to_law, to_numpy, total
from ..errors import DataError

# How far a row's sum may be from 1 before it is not a rounding error: by the precision the row was stored in.
SUM_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}


def _where(mask: Array, name: str) -> str:
    """'p row 3, token 17' of the first True in a mask (..., V) or (...)."""
    at = np.argwhere(to_numpy(mask))[0]
    return _place(name, at[:-1], int(at[-1]))


def _place(name: str, row: Any, token: int | None) -> str:
    index = ", ".join(str(int(i)) for i in row)
    where = f"{name} row {index}" if index else f"{name} row 0"
    return where if token is None else f"{where}, token {token}"


def _row_of(mask: Array, name: str) -> str:
    return _place(name, np.argwhere(np.atleast_1d(to_numpy(mask)))[0], None)


def validate(p: Array, name: str = "p", *, vocab_size: int | None = None, sum_tolerance: float | None = None) -> Array:
    """Check that every row of `p` (..., V) is a probability law and return it renormalised in float64.

    Fractions must sum to exactly 1 and come back unchanged. For floats the sum may be off by `sum_tolerance` (default:
    by stored precision, `SUM_TOLERANCE`: 1e-9 for float64, 1e-4 float32, 2e-2 float16, 5e-2 bfloat16). `vocab_size`
    is the vocabulary that the rows must have.

    Raises DataError naming the first bad row and token: NaN, infinity, negative mass, zero rows, wrong sum, wrong
    vocabulary, no tokens.
    """
    stored = str(getattr(p, "dtype", "float64")).rsplit(".", 1)[-1]
    tol = SUM_TOLERANCE.get(stored, 1e-9) if sum_tolerance is None else sum_tolerance
    p = to_law(p)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise DataError(f"{name} has no tokens: its shape is {tuple(p.shape)}, a law needs (..., V) with V >= 1")
    if vocab_size is not None and p.shape[-1] != vocab_size:
        raise DataError(f"{name} has {p.shape[-1]} tokens a row, not the vocabulary's {vocab_size}")
    if not is_rational(p):
        xp = namespace(p)
        for bad, cause in ((xp.isnan(p), "is NaN"), (xp.isinf(p), "is infinite")):
            if bool(xp.any(bad)):
                raise DataError(f"{_where(bad, name)} {cause}")
    if bool((p < 0).any()):
        at = np.argwhere(to_numpy(p < 0))[0]
        raise DataError(f"{_where(p < 0, name)} has negative mass {float(to_numpy(p)[tuple(at)]):.6g}")
    sums = total(p, keepdims=True)
    off = (sums != 1) if is_rational(p) else abs(sums - 1) > tol
    if bool(off.any()):
        at = tuple(np.argwhere(to_numpy(off))[0])
        raise DataError(
            f"{_place(name, at[:-1], None)} sums to {float(to_numpy(sums)[at]):.9g}, not 1 (tolerance {0 if is_rational(p) else tol:g})"
        )
    return p if is_rational(p) else p / sums


def validate_pair(p: Array, q: Array, *, vocab_size: int | None = None) -> tuple[Array, Array]:
    """`validate` both laws of a pair and check that they share rows and vocabulary. Raises DataError."""
    p, q = validate(p, "p", vocab_size=vocab_size), validate(q, "q", vocab_size=vocab_size)
    if p.shape[-1] != q.shape[-1]:
        raise DataError(
            f"p has {p.shape[-1]} tokens a row and q has {q.shape[-1]}: map the draft's ids to the target's first"
        )
    try:
        np.broadcast_shapes(tuple(p.shape), tuple(q.shape))
    except ValueError:
        raise DataError(f"p of shape {tuple(p.shape)} and q of shape {tuple(q.shape)} are not the same rows") from None
    return p, q


def validate_logits(z: Array, name: str = "logits", *, vocab_size: int | None = None) -> Array:
    """Check logits (..., width) and return them with padding removed.

    `-inf` is legal (mass 0). `vocab_size` smaller than the width drops the padding columns behind it: unmasked padding
    would take mass. Raises DataError naming row and token: NaN, +inf, an all -inf row, too few columns.
    """
    z = z if hasattr(z, "shape") else np.asarray(z, dtype=np.float64)
    xp = namespace(z)
    if z.ndim == 0 or z.shape[-1] == 0:
        raise DataError(f"{name} has no tokens: its shape is {tuple(z.shape)}")
    if vocab_size is not None:
        if z.shape[-1] < vocab_size:
            raise DataError(f"{name} has {z.shape[-1]} columns, fewer than the vocabulary's {vocab_size}")
        z = z[..., :vocab_size]
    top = xp.max(z, axis=-1)  # one pass tells: NaN and +inf survive a maximum, an all -inf row is one
    if bool(xp.all(xp.isfinite(top))):
        return z
    for bad, cause in ((xp.isnan(z), "is NaN"), (z == float("inf"), "is +inf")):
        if bool(xp.any(bad)):
            raise DataError(f"{_where(bad, name)} {cause}")
    raise DataError(f"{_row_of(top == -float('inf'), name)} is -inf everywhere: no token has mass")


def check_ids(tokens: Array, vocab_size: int, name: str = "token", q: Array | None = None) -> Array:
    """Check drafted ids (...) against [0, `vocab_size`) and, given draft laws `q` (..., V), that each has q > 0.

    NumPy would wrap -1 silently; a token with q = 0 cannot have been drafted from q. Raises DataError.
    """
    ids = np.asarray(to_numpy(tokens))
    bad = (ids < 0) | (ids >= vocab_size)
    if bad.any():
        at = tuple(np.argwhere(np.atleast_1d(bad))[0])
        raise DataError(f"{name} at position {_index(at)} is {int(np.atleast_1d(ids)[at])}, outside [0, {vocab_size})")
    if q is not None:
        drawn = np.take_along_axis(to_numpy(q), ids[..., None], axis=-1)[..., 0]
        if (drawn <= 0).any():
            at = tuple(np.argwhere(np.atleast_1d(drawn <= 0))[0])
            raise DataError(
                f"{name} {int(np.atleast_1d(ids)[at])} at position {_index(at)} has draft probability 0: not drawn from the declared q"
            )
    return ids


def _index(at: tuple[Any, ...]) -> str:
    return ", ".join(str(int(i)) for i in at)
