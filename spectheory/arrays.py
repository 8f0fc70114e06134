"""The array namespace and a few total functions on it: the only file that knows NumPy from torch from Fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import array_api_compat
import numpy as np

Array: TypeAlias = Any  # a NumPy array (float or object of Fractions) or a torch tensor


def namespace(*xs: Array) -> Any:
    """The array-API namespace shared by the arguments; lists and scalars count as NumPy."""
    arrays = [x for x in xs if array_api_compat.is_array_api_obj(x)]
    return array_api_compat.array_namespace(*arrays) if arrays else array_api_compat.array_namespace(np.empty(0))


def is_rational(x: Array) -> bool:
    """True for object arrays (of Fractions or ints), on which arithmetic is exact."""
    return isinstance(x, np.ndarray) and x.dtype == object


def to_law(x: Array) -> Array:
    """Anything array-like as float64 (or kept as an object array of Fractions), on its own device."""
    if array_api_compat.is_torch_array(x):
        return x.double()
    a = np.asarray(x)
    if a.dtype == object:
        return a if all(isinstance(v, Fraction | int) for v in a.flat) else a.astype(np.float64)
    return a.astype(np.float64, copy=False)


def align(*xs: Array) -> tuple[Array, ...]:
    """Bring laws to one namespace and precision: Fractions stay exact only if all are exact."""
    out = tuple(to_law(x) for x in xs)
    if any(is_rational(x) for x in out) and not all(is_rational(x) for x in out):
        out = tuple(x.astype(np.float64) if is_rational(x) else x for x in out)
    return out


def to_float(x: Array) -> Array:
    """Fractions to float64, everything else unchanged: for what is irrational by nature (logs, roots)."""
    return x.astype(np.float64) if is_rational(x) else x


def to_numpy(x: Array) -> Any:
    """A NumPy view or copy on the host (Fractions stay Fractions)."""
    return x.detach().cpu().numpy() if array_api_compat.is_torch_array(x) else np.asarray(x)


def scalar(x: Array) -> Any:
    """A 0-d NumPy result as a Python number (float or Fraction); torch stays a 0-d tensor; batches stay arrays."""
    if isinstance(x, np.ndarray):
        return x if x.ndim else x.item()
    return x.item() if isinstance(x, np.generic) else x


def zeros_like(x: Array) -> Array:
    """Zeros that are Fractions where x is exact."""
    return np.full(x.shape, Fraction(0), dtype=object) if is_rational(x) else namespace(x).zeros_like(x)


def ones_like(x: Array) -> Array:
    """Ones that are Fractions where x is exact."""
    return np.full(x.shape, Fraction(1), dtype=object) if is_rational(x) else namespace(x).ones_like(x)


def maximum(x: Array, y: Array | float) -> Array:
    """Pointwise maximum; a Python scalar is allowed on the right in every namespace."""
    xp = namespace(x)
    return np.maximum(x, y) if is_rational(x) else xp.maximum(x, y if hasattr(y, "shape") else xp.full_like(x, y))


def minimum(x: Array, y: Array | float) -> Array:
    """Pointwise minimum, as `maximum`."""
    xp = namespace(x)
    return np.minimum(x, y) if is_rational(x) else xp.minimum(x, y if hasattr(y, "shape") else xp.full_like(x, y))


def where(mask: Array, x: Array, y: Array) -> Array:
    """x where the mask holds, else y, in every namespace."""
    return np.where(mask, x, y) if is_rational(x) or is_rational(y) else namespace(mask, x, y).where(mask, x, y)


def total(x: Array, keepdims: bool = False) -> Array:
    """Sum over the vocabulary (last axis): pairwise in NumPy, exact on Fractions."""
    if is_rational(x):
        start: Any = Fraction(0)  # an empty or all-int object sum must still be a Fraction
        return np.sum(x, axis=-1, keepdims=keepdims, initial=start)
    return namespace(x).sum(x, axis=-1, keepdims=keepdims)


def ratio(x: Array, y: Array, at_zero: float | int) -> Array:
    """x / y with the value `at_zero` wherever y = 0, without warnings or NaN, in every namespace."""
    zero = y == 0
    safe = where(zero, ones_like(y), y)
    fill = Fraction(at_zero) if is_rational(y) and np.isfinite(at_zero) else at_zero
    return where(zero, fill * ones_like(y), x / safe)


def log0(x: Array) -> Array:
    """ln x with ln 0 = -inf and no warning; rounding below 0 counts as 0, NaN stays NaN; Fractions become float64."""
    x = to_float(x)
    xp = namespace(x)
    empty = x <= 0
    return xp.where(empty, xp.full_like(x, -float("inf")), xp.log(xp.where(empty, xp.ones_like(x), x)))


def xlogy(x: Array, y: Array) -> Array:
    """x ln y with 0 ln y = 0 for every y."""
    x = to_float(x)
    xp = namespace(x)
    return xp.where(x == 0, xp.zeros_like(x), xp.where(x == 0, xp.ones_like(x), x) * log0(y))


def one_hot(index: Array, like: Array) -> Array:
    """Rows with all mass on `index` (...) over the vocabulary of `like` (..., V)."""
    xp = namespace(like)
    if is_rational(like):
        hot = np.arange(like.shape[-1]) == np.asarray(index)[..., None]
        return where(hot, ones_like(like), zeros_like(like))
    ids = xp.arange(like.shape[-1], device=array_api_compat.device(like))
    return xp.astype(ids == xp.asarray(index, device=array_api_compat.device(like))[..., None], like.dtype)


def argmax(x: Array) -> Array:
    """Index of the largest entry on the last axis; the lowest index wins ties, in every namespace."""
    if is_rational(x):
        return np.argmax(x, axis=-1)
    xp = namespace(x)
    if array_api_compat.is_torch_array(x):  # torch.argmax does not promise the first of several maxima
        ids = xp.arange(x.shape[-1], device=array_api_compat.device(x))
        top = xp.max(x, axis=-1, keepdims=True)
        return xp.min(xp.where(x == top, ids, xp.full_like(ids, x.shape[-1])), axis=-1)
    return xp.argmax(x, axis=-1)


def peak(x: Array) -> Array:
    """Largest entry over the vocabulary, (..., 1), in every namespace."""
    return x.max(axis=-1, keepdims=True) if is_rational(x) else namespace(x).max(x, axis=-1, keepdims=True)
