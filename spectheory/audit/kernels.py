"""Compiled loops of the fused pass (numba, the optional extra `fast`): one row each, no allocation, no sort of the row.

`a`, `b` are weights proportional to p and q (float32 exponentials or float64 laws), `x`, `y` the reciprocals of their sums.
Sums are float64. `fused` is the only caller and holds the NumPy definitions these must agree with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Reassociation and contraction let LLVM vectorise the sums; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}
LN2 = 0.6931471805599453


def _bitcast(source: Any, target: Any, llvm: Any) -> Any:
    """An intrinsic that reads the bits of one scalar type as another."""

    @intrinsic  # type: ignore[untyped-decorator]
    def cast(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], llvm)

        return target(source), generate

    return cast


_float32_of = _bitcast(types.int32, types.float32, ir.FloatType())
_int32_of = _bitcast(types.float32, types.int32, ir.IntType(32))
_float64_of = _bitcast(types.int64, types.float64, ir.DoubleType())
_int64_of = _bitcast(types.float64, types.int64, ir.IntType(64))


@njit(fastmath=FAST, cache=True)  # type: ignore[untyped-decorator]
def top(z: Any) -> Any:
    """Largest logit; NaN if any is NaN (a sum of zeros times the logits would hide an infinity, so ask for it apart)."""
    best = z[0]
    bad = 0
    for i in range(z.size):
        best = z[i] if z[i] > best else best
        bad += z[i] != z[i]
    return best if bad == 0 else np.float32(np.nan)


@njit(fastmath=FAST, cache=True)  # type: ignore[untyped-decorator]
def exponentials(z: Any, peak: Any, out: Any) -> Any:
    """out = exp(z - peak) in float32 (about 1 ulp) and its float64 sum. -inf gives 0; below -87.3 the result is 0."""
    total = 0.0
    for i in range(z.size):
        t = z[i] - peak
        t = t if t > np.float32(-88.0) else np.float32(-88.0)
        n = np.float32(np.floor(t * np.float32(1.44269504) + np.float32(0.5)))
        # Cody-Waite: t = n ln 2 + r, |r| <= ln(2) / 2, then the Taylor polynomial of degree 6 (error below 2e-8).
        r = t - n * np.float32(0.693359375)
        r = r + n * np.float32(2.12194440e-4)
        c = np.float32(1 / 720)
        c = c * r + np.float32(1 / 120)
        c = c * r + np.float32(1 / 24)
        c = c * r + np.float32(1 / 6)
        c = c * r + np.float32(0.5)
        c = c * r + np.float32(1.0)
        c = c * r + np.float32(1.0)
        scale = _float32_of((np.int32(n) + np.int32(127)) << np.int32(23))
        w = c * scale if t > np.float32(-87.3) else np.float32(0.0)
        out[i] = w
        total += w
    return total


@njit(fastmath=FAST, cache=True)  # type: ignore[untyped-decorator]
def excess(a: Any, b: Any, x: Any, y: Any) -> Any:
    """sum (q - p)_+ = TV(p, q)."""
    total = 0.0
    for i in range(a.size):
        d = b[i] * y - a[i] * x
        total += d if d > 0 else 0.0
    return total


@njit(cache=True)  # type: ignore[untyped-decorator]
def candidates(a: Any, cut: Any, ids: Any) -> Any:
    """Ids of the weights >= cut, in order; returns their number. No branch to mispredict."""
    n = 0
    for i in range(a.size):
        ids[n] = i
        n += a[i] >= cut
    return n


@njit(cache=True)  # type: ignore[untyped-decorator]
def boundary(a: Any, x: Any, ids: Any, n: Any, threshold: Any, doubt: Any, mass: Any, where: Any) -> Any:
    """(size, weight and id of the last token inside, decided) of the nucleus among the `n` candidates.

    A histogram of mass over the upper float32 bits, walked from the top, finds the bucket that crosses the threshold;
    only that bucket is sorted. `decided` is False where a running sum comes within `doubt` of the threshold.
    """
    low = _int32_of(np.float32(a[ids[0]])) >> 15
    high = low
    for j in range(n):
        key = _int32_of(np.float32(a[ids[j]])) >> 15
        where[j] = key
        low, high = min(low, key), max(high, key)
    mass[: high - low + 1] = 0.0
    for j in range(n):
        mass[where[j] - low] += a[ids[j]] * x
    reached, bucket = 0.0, high - low
    while bucket > 0 and reached + mass[bucket] < threshold - doubt:
        reached += mass[bucket]
        bucket -= 1
    size, members = 0, 0
    for j in range(n):
        size += where[j] - low > bucket
        ids_j = ids[j]
        if where[j] - low == bucket:
            where[members] = ids_j  # overwrites keys already read: members <= j
            members += 1
    order = np.argsort(-a[where[:members]], kind="mergesort")
    for j in range(members):
        token = where[order[j]]
        before, reached = reached, reached + a[token] * x
        size += 1
        if reached >= threshold - doubt:
            return size, a[token], token, before < threshold - doubt and reached > threshold + doubt
    return size, a[ids[0]], 0, False


@njit(cache=True)  # type: ignore[untyped-decorator]
def excess_inside(a: Any, b: Any, x: Any, y: Any, ids: Any, n: Any, edge: Any, last: Any) -> Any:
    """sum of (q - p)_+ over the candidates inside the nucleus whose last token is `last` with weight `edge`."""
    total = 0.0
    for j in range(n):
        i = ids[j]
        if a[i] > edge or (a[i] == edge and i <= last):
            d = b[i] * y - a[i] * x
            total += d if d > 0 else 0.0
    return total


@njit(fastmath=FAST, cache=True)  # type: ignore[untyped-decorator]
def divergences(a: Any, b: Any, x: Any, y: Any, edge: Any, last: Any, share: Any) -> Any:
    """(KL(p || out), KL(out || p), max out / p) of NSD's output law (theorem N3), share = Delta / D.

    With r = out / p = 2^k m, every term is p (r - 1 - ln r) >= 0 and p (1 - r + r ln r) >= 0; at k = 0 both are written
    without cancellation through s = d / (2 + d), d = r - 1, ln r = 2 atanh s.
    """
    forward, backward, worst, lost = 0.0, 0.0, 0.0, 0
    for i in range(a.size):
        p, q = a[i] * x, b[i] * y
        some = p > 0
        d = (q - p) / (p if some else 1.0)
        inside = a[i] > edge or (a[i] == edge and i <= last)
        d = (d if inside else 0.0) if d > 0 else share * d
        d = d if some else 0.0
        r = 1.0 + d
        worst = r if r > worst else worst
        gone = r <= 0.0
        lost += gone
        v = 1e-300 if gone else r
        bits = _int64_of(v) - np.int64(0x3FE6A09E667F3BCD)  # so that m lies in [sqrt(1/2), sqrt(2))
        k = bits >> np.int64(52)
        m = _float64_of(_int64_of(v) - (k << np.int64(52)))
        same = k == 0
        e = d if same else m - 1.0
        s = e / (2.0 + e)
        t = s * s
        # atanh(s) - s = s^3 (1/3 + t/5 + t^2/7 + ...), t <= .0295: eight terms reach 1e-13
        tail = (
            t
            * s
            * (1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t * (1 / 11 + t * (1 / 13 + t * (1 / 15 + t / 17)))))))
        )
        log = 2.0 * (s + tail) + k * LN2
        forward += p * (s * d - 2.0 * tail if same else d - log)
        backward += p * (s * d + 2.0 * r * tail if same else r * log - d)
    return (np.inf if lost else forward), backward, worst
