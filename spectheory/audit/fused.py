"""The fused audit pass: nucleus, TV, deviation, acceptance, divergences and worst ratio of one NSD row without sorting it.

With numba (the extra `fast`) compiled loops do it in a few passes over the row; without, NumPy does the same slowly.
Standard is NSD at top_p = 0. On float64 laws the nucleus is exactly that of `pmf.nucleus`: rows that rounding could
decide are handed to it. `from_logits` takes float32 exponentials with float64 sums; the tests tie both to `pmf`.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from .. import pmf
from ..errors import DataError
from ..pmf import NUCLEUS_TOL


class RowFigures(NamedTuple):
    """One row under NSD: `edge` and `last` are the smallest weight inside the nucleus and the id it ends with."""

    nucleus_size: int
    ambiguous: bool
    tv: float
    acceptance: float
    deviation: float
    edge: float
    last: int
    kl_target_output: float = np.nan
    kl_output_target: float = np.nan
    max_ratio: float = np.nan


@lru_cache(maxsize=1)
def kernels() -> Any:
    """The compiled loops, or None without numba."""
    if find_spec("numba") is None:
        return None
    from . import kernels as compiled

    return compiled


_LOCAL = threading.local()


def _scratch(size: int) -> dict[str, Any]:
    """This thread's buffers for rows of `size` tokens, kept from row to row: fresh pages would cost more than the sums."""
    held: dict[str, Any] = getattr(_LOCAL, "buffers", {})
    if held.get("size") != size:
        held = {
            "size": size,
            "a": np.empty(size, np.float32),
            "b": np.empty(size, np.float32),
            "ids": np.empty(size + 1, np.int32),
            "where": np.empty(size + 1, np.int32),
            "mass": np.empty(1 << 16),
            "ratios": np.empty(size),
        }
        _LOCAL.buffers = held
    return held


def from_laws(p: Any, q: Any, top_p: float, full: bool = True) -> RowFigures:
    """Figures of one row of float64 laws (V,). `full` adds the divergences and the worst ratio."""
    compiled = kernels()
    if compiled is None:
        return _numpy_row(p, q, top_p, full)
    return _compiled_row(compiled, p, q, 1.0, 1.0, top_p, full, lambda: p)


def from_logits(target: Any, draft: Any, top_p: float, full: bool = True) -> RowFigures:
    """Figures of one row of float32 logits (V,): float32 exponentials, float64 sums. Raises DataError as `pmf.softmax`."""
    compiled = kernels()
    if compiled is None:
        return _numpy_row(pmf.softmax(target), pmf.softmax(draft), top_p, full)
    held = _scratch(target.size)
    sums = [_weights(compiled, z, held[name]) for z, name in ((target, "a"), (draft, "b"))]
    return _compiled_row(
        compiled, held["a"], held["b"], 1 / sums[0], 1 / sums[1], top_p, full, lambda: pmf.softmax(target)
    )


def _weights(compiled: Any, z: Any, out: Any) -> float:
    peak = z.max()  # NaN and infinities survive it
    if not np.isfinite(peak):
        pmf.validate_logits(z)  # raises DataError and says where
        raise DataError("logits are not finite")
    return float(compiled.exponentials(z, peak, out))


def _compiled_row(compiled: Any, a: Any, b: Any, x: float, y: float, top_p: float, full: bool, law: Any) -> RowFigures:
    """`law()` gives p in float64 for the rows that only `pmf.nucleus` may decide."""
    size, unclear, edge, last = _edge(compiled, a, x, top_p, law)
    tv, inside = compiled.excess(a, b, x, y, edge, last)
    tv = min(tv, 1.0)
    inside = min(inside, tv)
    out = RowFigures(size, unclear, tv, min(1 - tv + inside, 1.0), inside, float(edge), int(last))
    if not full:
        return out
    share = inside / tv if tv > 0 else 0.0
    ratios = _scratch(a.size)["ratios"]
    forward, backward = compiled.divergences(a, b, x, y, edge, last, share, ratios)
    return out._replace(kl_target_output=forward, kl_output_target=backward, max_ratio=float(ratios.max()))


def _edge(compiled: Any, a: Any, x: float, top_p: float, law: Any) -> tuple[int, bool, Any, int]:
    """(size, ambiguous, edge weight, last id) of the nucleus of the weights `a`."""
    held, kind = _scratch(a.size), a.dtype.type
    if top_p == 0:
        return 0, False, kind(np.inf), -1
    if top_p == 1:
        return int(np.count_nonzero(a)), False, kind(0), -1
    # Tokens below (1 - top_p) / V hold less than 1 - top_p together: the nucleus lies among the others.
    cut = kind((1 - top_p) / a.size / x * (1 - 1e-6))
    n = compiled.candidates(a, cut, held["ids"])
    doubt = a.size * 2.0**-52 + 3 * NUCLEUS_TOL
    found = compiled.boundary(a, x, cut, held["ids"], n, float(top_p), doubt, held["mass"], held["where"])
    size, edge, last, decided = found
    if decided:
        return size, False, kind(edge), last
    p = law()
    members = np.flatnonzero(pmf.nucleus(p, top_p))
    edge = a[members].min()
    # Weights tied with the edge outside the nucleus have larger ids: pmf breaks ties by index.
    last = int(members[a[members] == edge].max())
    return members.size, bool(pmf.nucleus_is_ambiguous(p, top_p)), edge, last


def _numpy_row(p: Any, q: Any, top_p: float, full: bool) -> RowFigures:
    # the nucleus lies among the tokens that are not tiny (see _edge): sort those alone
    some = np.flatnonzero(p >= (1 - top_p) / p.size * (1 - 1e-6)) if 0 < top_p < 1 else np.arange(p.size)
    mask = np.zeros(p.size, bool)
    mask[some] = pmf.nucleus(p[some], top_p)
    over = np.maximum(q - p, 0)
    tv, inside = float(pmf.total_variation(p, q)), float(over[mask].sum())
    # Delta = D, and with it an infinite divergence, is decided by what lies outside, not by two rounded sums
    inside = min(inside, tv) if over[~mask].any() else tv
    edge = p[mask].min() if mask.any() else np.inf
    last = int(np.flatnonzero(mask & (p == edge)).max(initial=-1))
    unclear = bool(pmf.nucleus_is_ambiguous(p[some], top_p))
    out = RowFigures(int(mask.sum()), unclear, tv, min(1 - tv + inside, 1.0), inside, float(edge), last)
    if not full:
        return out
    law = nsd_output(p, q, out)
    ratio = np.divide(law, p, out=np.ones_like(p), where=p > 0)
    return out._replace(
        kl_target_output=float(pmf.kl(p, law)), kl_output_target=float(pmf.kl(law, p)), max_ratio=float(ratio.max())
    )


def nsd_output(p: Any, q: Any, figures: RowFigures) -> Any:
    """NSD's output law (V,) from its figures, theorem N3: p + (q - p)_+ on the nucleus - (Delta / D) (p - q)_+."""
    inside = (p > figures.edge) | ((p == figures.edge) & (np.arange(p.size) <= figures.last))
    share = figures.deviation / figures.tv if figures.tv > 0 else 0.0
    d = q - p
    return np.maximum(p + np.where(d > 0, np.where(inside, d, 0), share * d), 0)


def accepts(p: Any, q: Any, x: int, figures: RowFigures) -> float:
    """NSD's acceptance of token x: 1 inside the nucleus, min(1, p/q) elsewhere."""
    if p[x] > figures.edge or (p[x] == figures.edge and x <= figures.last):
        return 1.0
    return float(min(1.0, p[x] / q[x])) if q[x] > 0 else 1.0
