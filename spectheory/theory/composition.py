"""Optimal accounting of independent steps (theorem Q7): TV of a product law by the law of the log-ratio and the FFT.

Under P~, S = sum_t ln(p~ / p) is a sum of independent terms and TV = E[(1 - e^{-S})_+] (plus the mass where p = 0). Each
term is split between two neighbours of a mesh so that both p~ and p keep their mass ("connect the dots"): the split pair
dominates, so its TV is an upper end without any error term. The lower end takes off how much the split can have
added, bounded from the composed law itself. Proofs: docs/theory/sequence.md.

Sources: Sommer, Meiser and Mohammadi 2019 (privacy loss distributions); Koskela et al. 2006.07134 (FFT); Doroshenko et al.
2207.04380 (connect the dots); Zhu, Dong and Wang 2106.08567 (dominating pairs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, to_float
from ..errors import DataError, PrecisionError, UsageError
from ..pmf import total_variation, validate
from ..results import Interval
from .chain import Chain
from .registry import theorem

EPS = float(np.finfo(float).eps)
MESH_CAP = 2**24  # bins of the composed law
DIGITS = 13  # decimals kept of a log-ratio: equal ones are merged
SNAP = 1e-11  # in units of the mesh: atoms this close to it are put on it


def _log_ratio(a: Array, b: Array) -> Array:
    """ln(a / b) of positive a, b; log1p keeps the digits of ratios near 1."""
    near = abs(a - b) < 0.5 * b
    return np.where(near, np.log1p((a - b) / b), np.log(a) - np.log(b))


def log_ratios(c: Chain) -> Array:
    """ln(p~ / p) by context and token, (S, V): infinite where one of them is 0, NaN where both are."""
    out = np.where(c.out > 0, np.inf, np.where(c.p > 0, -np.inf, np.nan))
    both = (c.out > 0) & (c.p > 0)
    out[both] = np.round(_log_ratio(c.out[both], c.p[both]), DIGITS)
    return out


@dataclass(frozen=True)
class LogRatioLaw:
    """Log-ratio law of a step pair under p~: finite `values` (m,) with `mass` (m,); `infinite` mass where p = 0."""

    values: Array
    mass: Array
    infinite: float


def log_ratio_law(p_tilde: Array, p: Array) -> LogRatioLaw:
    """The law of ln(p~(x) / p(x)), x ~ p~, of one step pair (V,), in nats; values equal to 13 decimals merged."""
    both = (p_tilde > 0) & (p > 0)
    a, b = p_tilde[both], p[both]
    values = _log_ratio(a, b)
    values, at = np.unique(np.round(values, DIGITS), return_inverse=True)
    return LogRatioLaw(values, np.bincount(at, a, minlength=len(values)), float(p_tilde[(p == 0)].sum()))


@theorem(
    "Q7",
    source="Koskela et al. 2006.07134; Doroshenko et al. 2207.04380; spectheory, docs/theory/sequence.md",
    statement=r"\mathrm{TV}(\tilde p^{\otimes T}, p^{\otimes T}) = \mathbb{E}_{\tilde P}(1 - e^{-S_T})_+,"
    r"\ S_T = \sum_t \ln(\tilde p / p)(x_t)",
    relation="=",
    hypotheses="independent steps, no bonus step (K >= T); with bonus steps an upper bound",
    status="proved",
)
def sequence_tv(
    p_tilde: Array, p: Array, *, length: int, block_size: int | None = None, error: float = 1e-6
) -> Interval:
    """TV over `length` independent steps of one pair `p_tilde`, `p` (V,): a certified Interval no wider than `error`.

    A `block_size` below `length` brings bonus steps: then only the upper end is that of the product law, and the lower
    end is that of the first K tokens (Q8). Raises DataError for what is not a law, UsageError for sizes below 1 or
    `error` <= 0, PrecisionError if `error` is below the numerical floor, which it names.
    """
    p_tilde, p = _pair(p_tilde, p)
    if p.ndim != 1:
        raise DataError(f"sequence_tv takes one pair (V,), not {p.shape}; product_tv takes one pair a step")
    if length < 1 or (block_size is not None and block_size < 1):
        raise UsageError(f"length and block_size must be >= 1, not {length} and {block_size}")
    whole = _compose([(log_ratio_law(p_tilde, p), length)], error, (p_tilde, p))
    if block_size is None or block_size >= length:
        return whole
    first = sequence_tv(p_tilde, p, length=block_size, error=error)
    return Interval(first.lower, None, whole.upper, "certified", None, "Q7 above, Q8 below")


def product_tv(p_tilde: Array, p: Array, *, error: float = 1e-6) -> Interval:
    """TV of the product of different steps, one pair a row of `p_tilde`, `p` (T, V). Certified as `sequence_tv`; no bonus steps.

    Raises DataError if the rows are no laws or not (T, V), PrecisionError as `sequence_tv`.
    """
    p_tilde, p = _pair(p_tilde, p)
    if p.ndim != 2:
        raise DataError(f"product_tv takes one pair a row (T, V), not {p.shape}")
    steps = [(log_ratio_law(a, b), 1) for a, b in zip(p_tilde, p)]
    return _compose(steps, error, (p_tilde[0], p[0]))


@theorem(
    "Q7.dominated",
    source="Zhu, Dong and Wang 2106.08567, Thm. 10",
    statement=r"H_\gamma(\tilde p_s \| p_s) \le H_\gamma(\tilde a \| a)\ \forall s, \gamma \ge 0 \Rightarrow "
    r"\mathrm{TV}(\tilde P, P) \le \mathrm{TV}(\tilde a^{\otimes T}, a^{\otimes T})",
    relation="<=",
    hypotheses="adaptive steps, bonus steps allowed; the whole hockey-stick curve, gamma < 1 included",
    status="proved",
)
def adaptive_tv(p_tilde: Array, p: Array, *, length: int, error: float = 1e-6) -> float:
    """Upper bound on TV over `length` steps, each any of the pairs (rows) of `p_tilde`, `p` (S, V), chosen adaptively.

    Raises DataError if the rows are no laws, UsageError and PrecisionError as `sequence_tv`.
    """
    return sequence_tv(*dominating_pair(p_tilde, p), length=length, error=error).upper


def dominates(a_tilde: Array, a: Array, p_tilde: Array, p: Array, least: float = 0.0) -> bool:
    """True if H_gamma(a~ || a) >= H_gamma(p~ || p) for every gamma >= `least` (up to 1e-12): compared at all breakpoints."""
    (a_tilde, a), (p_tilde, p) = _pair(a_tilde, a), _pair(p_tilde, p)
    points = [u[v > 0] / v[v > 0] for u, v in ((a_tilde, a), (p_tilde, p))]
    gamma = np.unique(np.maximum(np.concatenate([[least], *points]), least))
    return bool((_hockey_stick(a_tilde, a, gamma) >= _hockey_stick(p_tilde, p, gamma) - 1e-12).all())


@theorem(
    "Q7.partial",
    source="spectheory, docs/theory/sequence.md",
    statement=r"H_\gamma(\tilde p \| p) \le H_\gamma(\tilde a \| a)\ \forall \gamma \ge 1 \Rightarrow "
    r"\mathrm{TV}(\tilde p^{\otimes T}, p^{\otimes T}) \le \mathrm{TV}(\tilde a^{\otimes T}, a^{\otimes T})",
    relation="<=",
    hypotheses="domination for non-negative epsilon only",
    status="false",
    counterexample="((1, 0), (2/3, 1/3)) under ((2/3, 1/3), (1/3, 2/3)): two-fold TV 5/9 against 1/3",
    replacement="Q7.dominated: the whole curve, gamma in [0, 1) included",
)
def partially_dominated_tv(a_tilde: Array, a: Array, *, length: int) -> float:
    """What domination for gamma >= 1 alone would promise over `length` steps: the dominating pair's TV."""
    return sequence_tv(a_tilde, a, length=length).upper


def dominating_pair(p_tilde: Array, p: Array) -> tuple[Array, Array]:
    """A pair (a~, a) (m,) whose hockey-stick curve H_gamma = sum (a~ - gamma a)_+ is above that of every row pair (S, V).

    The upper envelope of the rows' curves, connected between all their breakpoints: convex curves stay below chords.
    """
    p_tilde, p = (np.atleast_2d(x) for x in _pair(p_tilde, p))
    some = p > 0
    gamma = np.unique(np.concatenate([[0.0], (p_tilde[some] / p[some])]))
    curve = np.max([_hockey_stick(a, b, gamma) for a, b in zip(p_tilde, p)], axis=0)
    slopes = np.append(np.diff(curve) / np.diff(gamma), 0.0)
    slopes = np.maximum.accumulate(slopes)  # convex up to rounding
    mass = np.diff(slopes, prepend=-1.0)
    infinite = float(curve[-1])
    a = np.append(np.maximum(mass, 0), 0.0)
    a_tilde = np.append(gamma * a[:-1], infinite)
    return a_tilde / a_tilde.sum(), a / a.sum()


def _hockey_stick(p_tilde: Array, p: Array, gamma: Array) -> Array:
    """H_gamma for every gamma (m,), from sorted ratios: O((V + m) log V)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(p > 0, p_tilde / np.where(p > 0, p, 1), np.where(p_tilde > 0, np.inf, 0))
    order = np.argsort(ratios)
    tail = [np.append(np.cumsum(x[order][::-1])[::-1], 0.0) for x in (p_tilde, p)]
    at = np.searchsorted(ratios[order], gamma, side="right")
    return np.maximum(tail[0][at] - gamma * tail[1][at], 0)


def _pair(p_tilde: Array, p: Array) -> tuple[Array, Array]:
    p_tilde, p = (np.asarray(to_float(validate(x, name))) for x, name in ((p_tilde, "p_tilde"), (p, "p")))
    if p_tilde.shape != p.shape:
        raise DataError(f"p_tilde and p must have one shape, not {p_tilde.shape} and {p.shape}")
    return p_tilde, p


def _compose(steps: list[tuple[LogRatioLaw, int]], error: float, first: tuple[Array, Array]) -> Interval:
    """Refine the mesh until the certified width is within `error`."""
    if not error > 0:
        raise UsageError(f"the error budget must be positive, not {error}")
    count = sum(n for _, n in steps)
    if count == 1:
        return Interval.exact(total_variation(*first), "Q7")
    survive = sum(n * math.log1p(-law.infinite) if law.infinite < 1 else -math.inf for law, n in steps)
    if survive < math.log(EPS) - 3:
        return Interval(1 - 4 * EPS, 1.0, 1.0, "certified", None, "Q7")
    mesh, offsets = _first_mesh(steps)
    while True:
        found = _at_mesh(steps, mesh, offsets, error / 40, -math.expm1(survive))
        width = found[1] - found[0]
        if found[2] > error / 2:
            raise PrecisionError(
                f"the error {error:g} is below the numerical floor {2 * found[2]:.2g} at {count} steps"
            )
        if width <= error:
            low, high = max(0.0, found[0]), min(1.0, found[1])
            return Interval(low, (low + high) / 2, high, "certified", None, "Q7")
        mesh *= min(0.7, max(1 / 32, 0.9 * math.sqrt(error / width)))


def _first_mesh(steps: list[tuple[LogRatioLaw, int]]) -> tuple[float, bool]:
    """A coarse mesh to start from, and whether it hangs at the smallest value, where two values need no rounding at all."""
    spread = max(float(np.ptp(law.values)) for law, _ in steps)
    if all(len(law.values) <= 2 for law, _ in steps) and len({float(np.ptp(law.values)) for law, _ in steps}) == 1:
        return spread or 1.0, True
    largest = max(float(abs(law.values).max()) for law, _ in steps)
    return max(spread, largest) / 512, False


@dataclass(frozen=True)
class _Split:
    """A step on the mesh: `index` of cells, `mass` at each, and the noise of one split: `mean` and `proxy` variance at most."""

    index: Array
    mass: Array
    mean: float
    proxy: float


def _split(law: LogRatioLaw, mesh: float, offset: float) -> _Split:
    """Connect the dots: mass at value L goes to the mesh points around it so that p~ and p both keep their mass."""
    position = (law.values - offset) / mesh
    cell = np.floor(position + SNAP)
    u = np.where(position - cell < SNAP, 0.0, (position - cell) * mesh)
    up = np.expm1(-u) / math.expm1(-mesh)  # share of p~ that moves up
    up_p = np.expm1(u) / math.expm1(mesh)  # share of p
    index = np.concatenate([cell, cell + 1]).astype(np.int64)
    mass = np.concatenate([law.mass * (1 - up), law.mass * up])
    low = index.min()
    dense = np.bincount(index - low, mass)
    kept = np.flatnonzero(dense)
    mean = float(np.max(np.maximum(abs(mesh * up - u), abs(mesh * up_p - u))))
    proxy = mesh**2 * float(np.max(np.maximum(_two_point_proxy(up), _two_point_proxy(up_p))))
    return _Split(kept + low, dense[kept], mean, proxy)


def _two_point_proxy(w: Array) -> Array:
    """Sub-Gaussian variance proxy of a Bernoulli(w) variable, (1 - 2w) / (2 ln((1 - w) / w)) (Kearns and Saul 1998)."""
    w = np.minimum(w, 1 - w)
    inner = (w > 0) & (w < 0.5 - 1e-6)
    safe = np.where(inner, w, 0.25)
    return np.where(inner, (1 - 2 * safe) / (2 * np.log((1 - safe) / safe)), np.where(w > 0, 0.25, 0.0))


def _at_mesh(
    steps: list[tuple[LogRatioLaw, int]], mesh: float, hang: bool, tail: float, infinite: float
) -> tuple[float, float, float]:
    """(lower, upper, rounding floor) of TV at one mesh, ends unclipped."""
    offsets = [float(law.values[0]) if hang else 0.0 for law, _ in steps]
    splits = [(_split(law, mesh, o), n) for (law, n), o in zip(steps, offsets)]
    low, high, lost = _window(splits, mesh, tail)
    bins, floor = _convolve(splits, low, high)
    count = sum(n for _, n in steps)
    s = sum(n * o for o, (_, n) in zip(offsets, steps)) + mesh * (low + np.arange(len(bins)))
    value = infinite + float(bins @ np.where(s > 0, -np.expm1(-np.maximum(s, 0)), 0.0))
    gap = _gap(splits, bins, s)
    largest = max(float(abs(law.values).max(initial=0)) for law, _ in steps)
    floor += count * (4 * EPS * largest + 10.0**-DIGITS + SNAP * mesh * any(x.proxy > 0 for x, _ in splits)) + 1e-15
    slack = lost + floor
    return value - gap - slack, value + slack, floor


def _gap(splits: list[tuple[_Split, int]], bins: Array, s: Array) -> float:
    """At most how much splitting has added to TV: E G(|S|) <= 4/3 E G((|S'| - tau)_+), tau = m + 2 sqrt(v).

    The noise N = S' - S has mean at most m and sub-Gaussian proxy v given the tokens, under p~ and (sign reversed) under p;
    G(c) bounds E(N - c)_+.
    """
    from scipy.special import erfc

    m, v = sum(n * x.mean for x, n in splits), sum(n * x.proxy for x, n in splits)
    if v == 0:
        return 0.0
    c = np.maximum(abs(s) - (m + 2 * math.sqrt(v)), 0)
    tail = math.sqrt(v * math.pi / 2) * erfc(np.maximum(c - m, 0) / math.sqrt(2 * v))
    g = np.where(c > m, np.minimum(tail, math.sqrt(v) / 2), m - np.minimum(c, m) + math.sqrt(v) / 2)
    return 4 / 3 * float(np.maximum(bins, 0) @ g)


def _window(splits: list[tuple[_Split, int]], mesh: float, tail: float) -> tuple[int, int, float]:
    """Mesh indices [low, high] that hold the composed law up to mass `tail` on each side (Chernoff), and the mass outside."""
    ends = [sum(n * int(x.index[end]) for x, n in splits) for end in (0, -1)]
    low, high = ends
    deviation = math.sqrt(sum(n * _variance(x) for x, n in splits)) or 1.0
    for scale in np.geomspace(0.05, 64, 32):
        theta = scale / deviation
        for sign in (1, -1):
            log_mgf = sum(n * _log_mgf(x, sign * theta) for x, n in splits)
            bound = (log_mgf - math.log(tail)) / theta
            if sign > 0:
                high = min(high, math.ceil(bound))
            else:
                low = max(low, math.floor(-bound))
    if high - low + 1 > MESH_CAP:
        raise PrecisionError(
            f"the mesh {mesh:.3g} takes {high - low + 1} bins, above MESH_CAP = {MESH_CAP}: "
            "the error budget is below the floor of the method"
        )
    return low, max(low, high), tail * (int(low > ends[0]) + int(high < ends[1]))


def _variance(x: _Split) -> float:
    mean = float(x.mass @ x.index) / float(x.mass.sum())
    return float(x.mass @ (x.index - mean) ** 2)


def _log_mgf(x: _Split, theta: float) -> float:
    exponent = theta * x.index
    top = float(exponent.max())
    return top + math.log(float(x.mass @ np.exp(exponent - top)))


def _convolve(splits: list[tuple[_Split, int]], low: int, high: int) -> tuple[Array, float]:
    """The composed law on mesh indices low..low + n - 1 by powers of the transform, and a bound on its rounding error.

    A transform of length n errs by about eps log2(n) a frequency, the power T by T times that; Cauchy-Schwarz
    turns the error's Euclidean norm (Parseval) into one for sums against values in [0, 1].
    """
    from scipy.fft import irfft, next_fast_len, rfft

    n = max(2, next_fast_len(high - low + 1, real=True))
    count = sum(k for _, k in splits)
    spectrum, shrink = np.ones(n // 2 + 1, dtype=complex), np.zeros(n // 2 + 1)
    for x, k in splits:
        wrapped = np.zeros(n)
        np.add.at(wrapped, x.index % n, x.mass)
        z = rfft(wrapped)
        size = np.log(np.maximum(abs(z), 1e-300))
        alive = k * size > -100.0  # below e^-100 the power is nothing
        shrink += k * size
        spectrum[alive] *= z[alive] ** k
        spectrum[~alive] = 0
    bins = np.roll(irfft(spectrum, n), -(low % n))
    delta = 4 * EPS * math.log2(n + 1)
    norms = [math.sqrt(float(np.mean(np.exp(2 * np.minimum(shrink, 0) * r)))) for r in (1, 1 - 1 / count)]
    return bins, math.sqrt(n) * delta * (norms[0] + count * norms[1])
