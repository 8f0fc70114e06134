"""Compiled loops of the fused pass (numba, the optional extra `fast`): one row each, no allocation, no sort of the row.

`a`, `b` are weights proportional to p and q (float32 exponentials or float64 laws), `x`, `y` the reciprocals of their sums.
Sums are float64. `fused` is the only caller and holds the NumPy definitions these must agree with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

# Reassociation and contraction let LLVM vectorise the sums. No NaN reaches these loops (the caller checks), so maxima
# may be reordered too; infinities keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp", "nnan"}
LN2 = 0.6931471805599453
ONE, SHIFT = np.uint64(1023), np.uint64(52)  # exponent bias and position of a float64
ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
MAGIC = np.uint64(0x4330000000000000)  # 2^52: an integer in its low bits reads as 2^52 + k


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
_float64_of = _bitcast(types.uint64, types.float64, ir.DoubleType())
_uint64_of = _bitcast(types.float64, types.uint64, ir.IntType(64))


@njit(fastmath=FAST, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def exponentials(z: Any, peak: Any, out: Any) -> Any:
    """out = exp(z - peak) in float32 (about 1 ulp) and its float64 sum. -inf gives 0; below -87.3 the result is 0."""
    total: Any = 0.0
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


@njit(cache=True)  # type: ignore[untyped-decorator]
def candidates(a: Any, cut: Any, ids: Any) -> Any:
    """Ids of the weights >= cut, in order; returns their number. No branch to mispredict."""
    n = 0
    for i in range(a.size):
        ids[n] = i
        n += a[i] >= cut
    return n


@njit(cache=True)  # type: ignore[untyped-decorator]
def boundary(a: Any, x: Any, cut: Any, ids: Any, n: Any, threshold: Any, doubt: Any, mass: Any, where: Any) -> Any:
    """(size, weight and id of the last token inside, decided) of the nucleus among the `n` candidates, weights in [cut, 1].

    A histogram of mass over the upper float32 bits, walked from the top, finds the bucket that crosses the threshold;
    only that bucket is sorted. `decided` is False where a running sum comes within `doubt` of the threshold.
    """
    low, high = _int32_of(np.float32(cut)) >> 15, _int32_of(np.float32(1.0)) >> 15
    mass[: high - low + 1] = 0.0
    for j in range(n):
        weight = a[ids[j]]
        key = (_int32_of(np.float32(weight)) >> 15) - low
        where[j] = key
        mass[key] += weight * x
    reached, bucket = 0.0, high - low
    while bucket > 0 and reached + mass[bucket] < threshold - doubt:
        reached += mass[bucket]
        bucket -= 1
    size, members = 0, 0
    for j in range(n):
        size += where[j] > bucket
        ids_j = ids[j]
        if where[j] == bucket:
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


@njit(fastmath=FAST, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def excess(a: Any, b: Any, x: Any, y: Any, edge: Any, last: Any) -> Any:
    """sum (q - p)_+ over all tokens (TV) and over the nucleus whose last token is `last` with weight `edge` (Delta)."""
    everywhere, inside = 0.0, 0.0
    for i in range(a.size):
        d = b[i] * y - a[i] * x
        d = d if d > 0 else 0.0
        everywhere += d
        inside += d if (a[i] > edge) | ((a[i] == edge) & (i <= last)) else 0.0
    return everywhere, inside


@njit(fastmath=FAST, error_model="numpy", cache=True)  # type: ignore[untyped-decorator]
def divergences(a: Any, b: Any, x: Any, y: Any, edge: Any, last: Any, share: Any, ratios: Any) -> Any:
    """(KL(p || out), KL(out || p)) of NSD's output law (theorem N3), share = Delta / D; fills `ratios` with out / p.

    With r = out / p = 2^k m, every term is p (r - 1 - ln r) >= 0 and p (1 - r + r ln r) >= 0; at k = 0 both are written
    without cancellation through s = d / (2 + d), d = r - 1, ln r = 2 atanh s. Branch-free, so that it vectorises.
    """
    forward, backward, lost = 0.0, 0.0, 0.0
    for i in range(a.size):
        p, q = a[i] * x, b[i] * y
        d = (q - p) / (p if p > 1e-300 else 1e-300)
        inside = (a[i] > edge) | ((a[i] == edge) & (i <= last))
        over = d if inside else 0.0
        d = over if d > 0 else share * d
        d = d if p > 0 else 0.0
        r = 1.0 + d
        ratios[i] = r  # a running maximum would keep LLVM from vectorising the loop
        lost += 1.0 if r <= 0.0 else 0.0
        bits = _uint64_of(r if r > 1e-300 else 1e-300)
        # (k + 1023) for m in [sqrt(1/2), sqrt(2)); by shifts and a magic number, as AVX2 has no int64 to float64
        biased = (bits - ROOT_HALF + (ONE << SHIFT)) >> SHIFT
        k = _float64_of(biased | MAGIC) - (4503599627370496.0 + 1023.0)
        m = _float64_of(bits - ((biased - ONE) << SHIFT))
        same = k == 0.0
        e = d if same else m - 1.0
        s = e / (2.0 + e)
        t = s * s
        # atanh(s) - s = s^3 (1/3 + t/5 + t^2/7 + ...), t <= .0295: eight terms reach 1e-13
        tail = 1 / 15 + t / 17
        tail = 1 / 9 + t * (1 / 11 + t * (1 / 13 + t * tail))
        tail = t * s * (1 / 3 + t * (1 / 5 + t * (1 / 7 + t * tail)))
        log = 2.0 * (s + tail) + k * LN2
        forward += p * (s * d - 2.0 * tail if same else d - log)
        backward += p * (s * d + 2.0 * r * tail if same else r * log - d)
    return (np.inf if lost > 0 else forward), backward
