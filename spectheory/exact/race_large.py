"""The law of R for large vocabularies, with a certified error: few winners, few times, few large probabilities.

The law f(r, t) of the number of tokens ahead depends on the winner i only through r = P_i / Q_i, and every probability in
it, p_j = 1 - exp(-t (Q_j r - P_j)_+), increases with r. Hence, all errors in the norm sum |.| of measures:
1. Winners. Between two nodes a < b of r, f(r_i, t) is replaced by its chord, with theta = (r_i - a) / (b - a). Replacing
   each p_j by its own chord costs 2 theta (1 - theta) (b - a) sum_j (range of dp_j/dr); the chord of the product instead
   of the product of chords costs 2 theta (1 - theta) (mu(b) - mu(a))^2. Tokens that are nodes cost nothing.
2. Times. The trapezoidal rule in ln t of `race_quadrature`, a step for each zone of r.
3. Small probabilities. Tokens with x_j = t Q_j r below a cut enter through the power sums of x_j: ln(z + (1 - z) e^{-x})
   is a power series in x whose coefficients have norm <= C RHO^-k (RHO below its radius ln 1.5); eight terms are kept.
4. The Poisson-binomial law comes from its values on N roots of unity; what wraps around is bounded by Chernoff.
5. Pieces (zone, t) with the most tokens ahead are left out while their weight fits the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CostError, PrecisionError
from .race_quadrature import trapezoid

ORDER = 8
RHO = 0.4
SERIES = -math.log(3 - 2 * math.exp(RHO))  # the majorant series -ln(3 - 2 e^x) at RHO
FLOOR = 1e-12
WORK_CAP = 4e11  # complex multiplications; about an hour
CHUNK = 1 << 15  # complex numbers a pass: stays in the cache
LENGTHS = sorted(a << k for a in (4, 5, 6, 7) for k in range(1, 24))


@dataclass(frozen=True)
class _Zone:
    """Consecutive nodes r (G,), the winners' mass W (G,) they carry, S (G - 1,) = sum P theta (1 - theta) of each bin;

    times t (T,), weights w (T,), and the weight `left` of time 0, at which no token is ahead.
    """

    r: Any
    weight: Any
    spread: Any
    t: Any
    w: Any
    left: float


def rank_measure(p: Any, q: Any, budget: float, every_token: bool = False) -> tuple[Any, float]:
    """Approximate law of R, (V,), and the certified bound (<= `budget`) on the sum of absolute errors. p, q float (V,).

    With `every_token` no winners are interpolated. Raises PrecisionError below FLOOR, CostError beyond WORK_CAP.
    """
    if budget < FLOOR:
        raise PrecisionError(f"an error of {budget:g} is below the floor {FLOOR:g} of the race quadrature")
    law = np.zeros(len(p))
    alive = q > 0
    law[int(alive.sum()) :] = p[~alive]  # tokens without draft mass: drafted last, in the order of their index
    order = np.flatnonzero(alive)[np.argsort(p[alive] / q[alive], kind="stable")]
    p, q = p[order], q[order]
    winners = int((p > 0).sum())
    if winners == 0:
        return law, 0.0
    r = p / q
    count = winners if every_token else _first_guess(p, r, budget)
    while True:
        zones, error = _zones(p, q, r, count, 0.25 * budget)
        pieces, dropped = _pieces(zones, 0.1 * budget)
        engine = _Engine(p, q, r, 0.1 * budget)
        chords = 0.0 if count >= winners else sum(engine.chord_error(*piece) for piece in pieces)
        if chords <= 0.5 * budget:
            break
        count = min(winners, int(count * 1.2 * math.sqrt(chords / (0.5 * budget))) + 8)
    for zone in zones:
        law[0] += zone.left * zone.weight.sum()
    return law, error + dropped + chords + engine.run(pieces, law)


def _first_guess(p: Any, r: Any, budget: float) -> int:
    """Nodes needed if the chord error were (sum P^(1/3) gap^(2/3))^3 / G^2, the value for equidistributed bins."""
    return int(min((p > 0).sum(), 16 + math.sqrt(_density(p, r)[-1] ** 3 / budget)))


def _density(p: Any, r: Any) -> Any:
    """Cumulative sum of P^(1/3) gap^(2/3): equal steps of it balance the chord errors P gap^2 of the bins."""
    x = np.where(r < 1, r, np.sqrt(r) * (1 + np.log(np.maximum(r, 1))))
    return np.cumsum(np.cbrt(p) * np.cbrt(np.diff(x, prepend=x[0])) ** 2)


def _zones(p: Any, q: Any, r: Any, count: int, budget: float) -> tuple[list[_Zone], float]:
    """About `count` nodes at tokens of positive P, cut into zones of r within a factor 4, each with its own times."""
    won = np.flatnonzero(p > 0)
    pw, rw = p[won], r[won]
    if count >= len(won):
        nodes = np.unique(rw)
    else:
        level = _density(pw, rw)
        at = np.searchsorted(level, np.linspace(0, level[-1], count))
        nodes = np.unique(np.concatenate([rw[[0, -1]], rw[at], rw[np.maximum(at - 1, 0)]]))
    bins = np.clip(np.searchsorted(nodes, rw, side="right") - 1, 0, max(len(nodes) - 2, 0))
    upper = nodes[np.minimum(np.arange(max(len(nodes) - 1, 1)) + 1, len(nodes) - 1)]
    label = np.maximum(np.ceil(np.log(upper) / math.log(4)), -3)
    out, error = [], 0.0
    for value in np.unique(label):
        span = np.flatnonzero(label == value)
        here = nodes[span[0] : span[-1] + 2]
        inside = (bins >= span[0]) & (bins <= span[-1])
        weight, spread = _hats(here, rw[inside], pw[inside])
        # The error of a zone counts with its mass; the budget is shared half by mass, half evenly.
        mass = float(weight.sum())
        if mass == 0:
            continue
        allowed = budget * (0.5 + 0.5 / (len(np.unique(label)) * mass))
        t, w, left, e = trapezoid(lambda s: _mean_ahead(p, q, r, float(here[-1]), s), min(allowed, 1.0))  # noqa: B023
        out.append(_Zone(here, weight, spread, t, w, left))
        error += mass * e
    return out, error


def _hats(nodes: Any, r: Any, p: Any) -> tuple[Any, Any]:
    """Winners' masses shared linearly between the nodes around them, and sum P theta (1 - theta) a bin."""
    weight, spread = np.zeros(len(nodes)), np.zeros(len(nodes) - 1)
    if len(nodes) == 1:
        return np.array([p.sum()]), spread
    b = np.clip(np.searchsorted(nodes, r, side="right") - 1, 0, len(nodes) - 2)
    theta = np.clip((r - nodes[b]) / (nodes[b + 1] - nodes[b]), 0, 1)
    np.add.at(weight, b, p * (1 - theta))
    np.add.at(weight, b + 1, p * theta)
    np.add.at(spread, b, p * theta * (1 - theta))
    return weight, spread


def _mean_ahead(p: Any, q: Any, r: Any, winner: float, t: float) -> float:
    """mu(t) = sum_j 1 - exp(-t (Q_j r - P_j)_+) at r = `winner`; tokens are sorted by r."""
    n = int(np.searchsorted(r, winner))
    return float(-np.expm1(-t * np.maximum(q[:n] * winner - p[:n], 0)).sum())


def _pieces(zones: list[_Zone], budget: float) -> tuple[list[tuple[_Zone, float, float]], float]:
    """(zone, time, weight), most tokens ahead last, without the last ones: their weight, <= `budget`, is returned."""
    found = [(zone, float(t), float(w)) for zone in zones for t, w in zip(zone.t, zone.w)]
    found.sort(key=lambda piece: piece[0].r[-1] * piece[1])
    dropped = 0.0
    while found:
        weight = found[-1][2] * float(found[-1][0].weight.sum())
        if dropped + weight > budget:
            break
        dropped += weight
        found.pop()
    return found, dropped


class _Engine:
    """Sums over tokens at given (r, t): large tokens one by one, small ones from prefix sums of Q^a P^b in the order of r.

    `cut` separates small from large; pieces come in the order of falling cuts, so one set of prefix sums lives at a time.
    """

    def __init__(self, p: Any, q: Any, r: Any, budget: float) -> None:
        self.p, self.q, self.r, self.budget, self.cut = p, q, r, budget, -1.0
        self.total = np.concatenate([[0.0], np.cumsum(q)])
        self.prefix: dict[tuple[int, int], Any] = {}
        self.monomials: dict[tuple[int, int], Any] = {}

    def _split(self, winner: float, t: float) -> None:
        """Large tokens are those with x = t Q r above the cut at which the series errs by a fifth of the budget."""
        u = winner * t
        x = RHO * (0.2 * self.budget * RHO / (SERIES * max(1.0, u))) ** (1 / ORDER)
        cut = 2.0 ** math.floor(math.log2(x / u))
        if cut != self.cut:
            small = self.q <= cut
            self.cut, self.prefix, self.monomials = cut, {}, {(0, 0): np.ones(int(small.sum()))}
            self.small = (self.p[small], self.q[small] / cut, self.r[small])  # scaled: no power can overflow
            self.large = (self.p[~small], self.q[~small], self.r[~small])

    def _sum(self, a: int, b: int) -> Any:
        """Prefix sums (n + 1,) of (Q / cut)^a P^b over the small tokens."""
        if (a, b) not in self.prefix:
            sums = np.zeros(len(self.small[0]) + 1)
            np.cumsum(self._monomial(a, b), out=sums[1:])
            self.prefix[a, b] = sums
        return self.prefix[a, b]

    def _monomial(self, a: int, b: int) -> Any:
        """(Q / cut)^a P^b of the small tokens, each from one of lower degree."""
        if (a, b) not in self.monomials:
            p, q, _ = self.small
            self.monomials[a, b] = self._monomial(a - 1, b) * q if a else self._monomial(a, b - 1) * p
        return self.monomials[a, b]

    def chord_error(self, zone: _Zone, t: float, w: float) -> float:
        """Item 1 of the module: 2 w sum over bins of S ((mu_b - mu_a)^2 + (b - a) sum of ranges of dp_j/dr)."""
        if not zone.spread.any():
            return 0.0
        self._split(float(zone.r[-1]), t)
        p, q, r = self.large
        n = int(np.searchsorted(r, zone.r[-1]))
        p, q = p[:n], q[:n]
        at = np.searchsorted(self.small[2], zone.r)
        all_at = np.searchsorted(self.r, zone.r)
        mean = t * (zone.r * self.cut * self._sum(1, 0)[at] - self._sum(0, 1)[at])  # x bounds the growth of 1 - e^-x
        slope = np.zeros(len(zone.r))
        rows = max(1, CHUNK // max(n, 1))
        for i in range(0, len(zone.r), rows):
            e = np.exp(-t * np.maximum(zone.r[i : i + rows, None] * q - p, 0))
            mean[i : i + rows] += (1 - e).sum(axis=1)
            slope[i : i + rows] = t * (e @ q)
        width = np.diff(zone.r)
        # Ranges of slopes: concave branches of large and of small tokens, and tokens whose kink lies inside the bin.
        ranges = (
            -np.diff(slope)
            + (t * self.cut) * (t * self.cut * width) * self._sum(2, 0)[at[1:]]
            + t * np.diff(self.total[all_at])
        )
        return 2 * w * float(zone.spread @ (np.diff(mean) ** 2 + width * np.maximum(ranges, 0)))

    def run(self, pieces: list[tuple[_Zone, float, float]], law: Any) -> float:
        """Add the law of every piece to `law`; the certified L1 error of series and wrap-around."""
        error, sizes = 0.0, [self._size(*piece) for piece in pieces]
        work = sum(len(zone.r) * length * (n + ORDER) / 2 for (zone, _, _), (n, _, length) in zip(pieces, sizes))
        if work > WORK_CAP:
            raise CostError(f"the law of R takes {work:.2g} multiplications (cap {WORK_CAP:g}): ask for a larger tol")
        for (zone, t, w), (n, mu, length) in zip(pieces, sizes):
            self._split(float(zone.r[-1]), t)
            error += w * float(zone.weight.sum()) * (self._series_error(zone, t) + 2 * _chernoff(mu, length))
            values = np.fft.irfft(w * self._transform(zone, t, n, length), length)
            law[:length] += values[: len(law)]
        return error

    def _size(self, zone: _Zone, t: float, w: float) -> tuple[int, float, int]:
        """Large tokens that can be ahead, mu at the zone's largest r, the least transform length with no wrap-around."""
        top = float(zone.r[-1])
        self._split(top, t)
        p, q, r = self.large
        n = int(np.searchsorted(r, top))
        at = int(np.searchsorted(self.small[2], top))
        mu = float(-np.expm1(-t * (top * q[:n] - p[:n])).sum()) + max(
            0.0, t * (top * self.cut * self._sum(1, 0)[at] - self._sum(0, 1)[at])
        )
        allowed = min(1.0, 0.1 * self.budget / max(w * float(zone.weight.sum()) * 50, 1e-300))
        possible = int(np.searchsorted(self.r, top)) + 1
        for length in LENGTHS:
            if 2 * _chernoff(mu, length) <= allowed or (at == 0 and length >= possible):
                return n, mu if length < possible else 0.0, length
        raise CostError(f"{mu:.3g} tokens ahead at once exceed the longest transform")

    def _series_error(self, zone: _Zone, t: float) -> float:
        """e^rem - 1, rem = SERIES (x / RHO)^(ORDER + 1) / (1 - x / RHO) summed over the small tokens."""
        top = float(zone.r[-1])
        at = int(np.searchsorted(self.small[2], top))
        ratio = self.cut * top * t / RHO
        return math.expm1(SERIES * ratio**ORDER / (1 - ratio) * t * top * self.cut * float(self._sum(1, 0)[at]) / RHO)

    def _transform(self, zone: _Zone, t: float, n: int, length: int) -> Any:
        """sum over nodes of W times the generating function at the first half of the roots of unity, (length / 2 + 1,)."""
        p, q, _ = self.large
        z = np.exp(-2j * math.pi * np.arange(length // 2 + 1) / length)
        kappa, out = _cumulants(z), np.zeros(len(z), dtype=complex)
        used = np.flatnonzero(zone.weight != 0)
        rows = max(1, CHUNK // len(z))
        for i in range(0, len(used), rows):
            r = zone.r[used[i : i + rows]]
            phi = np.exp(self._power_sums(r, t) @ kappa)
            ahead = -np.expm1(-t * np.maximum(np.outer(q[:n], r) - p[:n, None], 0))
            buffer = np.empty_like(phi)
            for column in ahead[ahead.any(axis=1)]:
                np.multiply(column[:, None], z - 1, out=buffer)
                buffer += 1
                phi *= buffer
            out += zone.weight[used[i : i + rows]] @ phi
        return out

    def _power_sums(self, r: Any, t: float) -> Any:
        """sum_j x_j^k, k = 1..ORDER, (g, ORDER), over the small tokens ahead: x_j = t (Q_j r - P_j), binomially expanded."""
        at = np.searchsorted(self.small[2], r)
        out = np.zeros((len(r), ORDER))
        for k in range(1, ORDER + 1):
            for b in range(k + 1):
                factor = math.comb(k, b) * (-t) ** b * (t * r * self.cut) ** (k - b)
                out[:, k - 1] += factor * self._sum(k - b, b)[at]
        return out


def _cumulants(z: Any) -> Any:
    """Coefficients (ORDER, F) of x^k in ln(1 + (1 - z)(e^{-x} - 1)), from k b_k = sum_m m c_m b_{k - m}."""
    b = [np.ones_like(z)] + [(1 - z) * (-1) ** k / math.factorial(k) for k in range(1, ORDER + 1)]
    c: list[Any] = [np.zeros_like(z)]
    for k in range(1, ORDER + 1):
        c.append(b[k] - sum(m * c[m] * b[k - m] for m in range(1, k)) / k)
    return np.array(c[1:])


def _chernoff(mu: float, k: int) -> float:
    """P(N >= k) <= exp(-(k ln(k / mu) - k + mu)) for a Poisson-binomial N of mean mu < k."""
    if mu < 1e-200:  # k / mu would overflow
        return 0.0
    return math.exp(-(k * math.log(k / mu) - k + mu)) if k > mu else 1.0
